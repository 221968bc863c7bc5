"""Which files are mutated, and which tests may see them: a small quick set for each group."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Group:
    """Files of one room, and the tests that are meant to notice."""

    name: str
    patterns: tuple[str, ...]
    tests: tuple[str, ...]

    def files(self, root: Path) -> list[str]:
        """Return the files, relative to the repository."""
        found = {path for pattern in self.patterns for path in root.glob(f"src/scgd/{pattern}")}
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
        ("tests/test_policies.py", "tests/test_policy_details.py", "tests/test_law.py",
         "tests/test_random.py", "tests/test_policy_numbers.py"),
    ),
    Group(
        "sampler",
        ("sampler.py",),
        ("tests/test_sampler.py", "tests/test_policies.py", "tests/test_ask_tell.py",
         "tests/test_checkpoint.py"),
    ),
    Group(
        "stepping",
        ("searches/stepping.py", "explore/*.py"),
        ("tests/test_stepping_numbers.py", "tests/test_bodies.py", "tests/test_single_body.py",
         "tests/test_block_bodies.py", "tests/test_agreement.py", "tests/test_ask_tell.py",
         "tests/test_timetable.py", "tests/test_searches.py", "tests/test_limits.py",
         "tests/test_told_body.py"),
    ),
    Group(
        "searches",
        ("searches/*.py", "searches/arms/*.py", "searches/mixed/*.py"),
        ("tests/test_searches.py", "tests/test_plan_numbers.py", "tests/test_search_numbers.py",
         "tests/test_noise_numbers.py", "tests/test_ladder_numbers.py", "tests/test_arm_numbers.py",
         "tests/test_sweep_numbers.py", "tests/test_structure_numbers.py",
         "tests/test_contest_numbers.py", "tests/test_turn_numbers.py", "tests/test_strides.py",
         "tests/test_trend.py", "tests/test_filtering.py",
         "tests/test_length_numbers.py", "tests/test_walk_numbers.py",
         "tests/test_regression_numbers.py", "tests/test_newton_numbers.py",
         "tests/test_agreed_numbers.py", "tests/test_told_body.py", "tests/test_look_numbers.py",
         "tests/test_member_numbers.py", "tests/test_newton_details.py",
         "tests/test_race_details.py", "tests/test_line_numbers.py",
         "tests/spaces/test_mixed_numbers.py", "tests/spaces/test_grid_numbers.py",
         "tests/test_guards.py", "tests/test_race.py", "tests/test_grain.py", "tests/test_slide.py",
         "tests/test_race_box.py", "tests/test_noisy.py",
         "tests/test_regression.py", "tests/test_screen.py", "tests/test_relevance.py",
         "tests/test_auto.py", "tests/test_auto_uses.py", "tests/spaces/test_mixed.py"),
    ),
    Group(
        "plans",
        ("plans/*.py",),
        ("tests/test_plan_numbers.py", "tests/test_stories.py", "tests/test_noisy_stories.py",
         "tests/test_guards.py", "tests/test_auto.py", "tests/test_auto_uses.py",
         "tests/test_searches.py", "tests/test_noisy.py",
         "tests/test_relevance.py", "tests/spaces/test_mixed.py"),
    ),
    Group(
        "linear",
        ("linear/sweeps.py", "linear/ascent.py", "linear/leap.py", "linear/anderson.py",
         "linear/certificate.py", "linear/samples.py", "linear/losses.py"),
        ("tests/linear/test_kernels.py", "tests/linear/test_certificates.py",
         "tests/linear/test_leap.py"),
    ),
    Group(
        "torch",
        ("torch/kernels.py", "torch/draws.py", "torch/rules.py", "torch/layer_law.py"),
        ("tests/torch/test_torch_draws.py", "tests/torch/test_torch_agreement.py",
         "tests/torch/test_torch_rules.py", "tests/torch/test_torch_auto.py",
         "tests/torch/test_torch_numbers.py"),
    ),
)  # fmt: skip
