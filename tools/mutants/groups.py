"""Which files are mutated, and which tests may see them: a small quick set for each group."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Group:
    """Files of one room, and the tests that are meant to notice.

    Patterns are relative to ``src/scgd``; those that begin with a package beside it to ``src``.
    """

    name: str
    patterns: tuple[str, ...]
    tests: tuple[str, ...]

    def files(self, root: Path) -> list[str]:
        """Return the files, relative to the repository."""
        beside = [p.name for p in (root / "src").iterdir() if p.name.startswith("scgd_")]
        patterns = [
            f"src/{p}" if p.split("/")[0] in beside else f"src/scgd/{p}" for p in self.patterns
        ]
        found = {path for pattern in patterns for path in root.glob(pattern)}
        names = sorted(path.relative_to(root).as_posix() for path in found)
        return [name for name in names if not name.endswith("__init__.py")]

    def asked(self, file: str, names: list[str]) -> bool:
        """Whether a file of this group is among what was asked for."""
        return not names or self.name in names or any(file.endswith(name) for name in names)


GROUPS = (
    Group("steps", ("steps/*.py",), ("tests/test_steps.py",)),
    Group(
        "timetable",
        ("timetable.py", "schedules.py"),
        ("tests/test_timetable.py", "tests/test_schedules.py"),
    ),
    Group("estimators", ("estimators.py",), ("tests/test_estimators.py",)),
    Group(
        "policies",
        ("policies/*.py", "random.py"),
        ("tests/test_policies.py", "tests/test_policy_details.py", "tests/test_distribution.py",
         "tests/test_random.py", "tests/test_policy_numbers.py"),
    ),
    Group(
        "sampler",
        ("sampler.py",),
        ("tests/test_sampler.py", "tests/test_policies.py", "tests/test_ask_tell.py",
         "tests/test_checkpoint.py"),
    ),
    Group(
        "descent",
        ("descent/*.py",),
        ("tests/test_stepping_numbers.py", "tests/test_loops.py", "tests/test_agreement.py",
         "tests/test_ask_tell.py", "tests/test_timetable.py", "tests/test_limits.py"),
    ),
    Group(
        "strategies",
        ("strategies/*.py",),
        ("tests/strategies/test_constrained.py", "tests/strategies/test_gradient_check.py",
         "tests/strategies/test_noise_test.py", "tests/strategies/test_independent_noise.py",
         "tests/strategies/test_portfolio.py", "tests/strategies/test_quadratic_model.py",
         "tests/strategies/test_scgd_strategies.py", "tests/strategies/test_spaces.py",
         "tests/strategies/test_verification.py", "tests/test_auto.py",
         "tests/test_interpreter.py",),
    ),
    Group(
        "linear",
        ("linear/sweeps.py", "linear/ascent.py", "linear/leap.py", "linear/anderson.py",
         "linear/certificate.py", "linear/samples.py", "linear/losses.py"),
        ("tests/linear/test_kernels.py", "tests/linear/test_certificates.py",
         "tests/linear/test_leap.py"),
    ),
    Group(
        "linear-fits",
        ("linear/*.py", "linear/tables/*.py"),
        ("tests/linear/test_kernels.py",
         "tests/linear/test_linear_inputs.py", "tests/linear/test_models.py",
         "tests/linear/test_certificates.py", "tests/linear/test_bounds.py",
         "tests/linear/test_preparation.py", "tests/linear/test_tables.py",
         "tests/linear/test_linear_estimators.py", "tests/linear/test_crossvalidated.py"),
    ),
    Group(
        "run",
        ("run/*.py", "checkpoint.py", "files.py", "evaluations.py", "outcomes.py", "calling.py",
         "trials.py", "samples.py", "history.py", "driving.py", "status.py",
         "workers/local.py", "workers/tasks.py", "workers/remote.py"),
        ("tests/test_checkpoint.py", "tests/test_file_arguments.py", "tests/test_files.py",
         "tests/test_lock.py", "tests/test_identity.py", "tests/test_ledger.py",
         "tests/test_recording.py", "tests/test_laboratory.py", "tests/test_limits.py",
         "tests/test_read_only.py", "tests/test_odd_functions.py", "tests/test_bad_input.py",
         "tests/test_asynchronous.py", "tests/test_interpreter.py", "tests/test_run_end.py",
         "tests/test_plots.py", "tests/test_signals.py"),
    ),
    Group(
        "constraints",
        ("constraints/*.py",),
        ("tests/test_constraints.py", "tests/test_newton.py",
         "tests/strategies/test_constrained.py"),
    ),
    Group(
        "spaces",
        ("spaces/*.py",),
        ("tests/spaces/test_space.py", "tests/spaces/test_minimize_space.py",
         "tests/spaces/test_space_command.py",
         "tests/test_footprint.py"),
    ),
    Group(
        "theory",
        ("theory.py", "scgd_paper/theory/*.py"),
        ("tests/paper/test_theory.py",),
    ),
    Group(
        "paper",
        ("scgd_paper/*.py",),
        ("tests/paper/test_published_settings.py", "tests/paper/test_paths.py",
         "tests/paper/test_settings.py", "tests/paper/test_table.py",
         "tests/paper/test_theory_panels.py", "tests/paper/test_report.py",
         "tests/paper/test_datasets.py", "tests/paper/test_cli.py",
         "tests/paper/test_variation.py", "tests/paper/test_network_runs.py",
         "tests/paper/test_objective.py", "tests/torch/test_paper_forward_loss.py"),
    ),
    Group(
        "paper-engine",
        ("scgd_paper/linear/*.py",),
        ("tests/paper/test_directions.py", "tests/paper/test_linear_agreement.py",
         "tests/paper/test_objective.py", "tests/paper/test_solve.py",
         "tests/linear/test_adaptive.py"),
    ),
    Group(
        "arena",
        ("scgd_arena/*.py", "scgd_arena/peers/*.py"),
        ("tests/arena/test_compare.py", "tests/arena/test_everyday.py",
         "tests/arena/test_outside.py", "tests/arena/test_ablation.py",
         "tests/arena/test_results_page.py", "tests/arena/test_turbo.py"),
    ),
    Group(
        "torch",
        ("torch/kernels.py", "torch/draws.py", "torch/rules.py", "torch/layer_sampler.py"),
        ("tests/torch/test_torch_draws.py", "tests/torch/test_torch_agreement.py",
         "tests/torch/test_torch_rules.py", "tests/torch/test_torch_auto.py",
         "tests/torch/test_torch_numbers.py"),
    ),
    Group(
        "torch-optimizers",
        ("torch/*.py",),
        ("tests/torch/test_torch_agreement.py", "tests/torch/test_torch_auto.py",
         "tests/torch/test_torch_groups.py", "tests/torch/test_torch_memory.py",
         "tests/torch/test_torch_refusals.py", "tests/torch/test_torch_team.py",
         "tests/torch/test_torch_tensors.py", "tests/torch/test_torch_zeroth_order.py",
         "tests/torch/test_paper_forward_loss.py"),
    ),
    Group(
        "blocks",
        ("torch/blocks/*.py",),
        ("tests/torch/test_block_policies.py", "tests/torch/test_block_defects.py",
         "tests/torch/test_block_training.py", "tests/torch/test_block_paths.py",
         "tests/torch/test_block_resume.py", "tests/torch/test_block_refusals.py",
         "tests/torch/test_block_traps.py"),
    ),
)  # fmt: skip
