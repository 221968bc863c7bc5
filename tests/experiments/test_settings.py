"""The rows with published settings give the published figures."""

import os
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from scgd.experiments import linear_runs
from scgd.experiments.published import OPTIMA, published_curves
from scgd.experiments.registry import EXPERIMENTS
from scgd.experiments.rows import Job
from scgd.experiments.summary import published_finals

SMALL = ("ridge-n1000-p20", "logistic-n1000-p20", "ridge-n5000-p20")
N_RUNS, LEVEL = 200, 1e-3
needs_curves = pytest.mark.skipif(
    "SCGD_PUBLISHED" not in os.environ, reason="SCGD_PUBLISHED names no folder of curves"
)


def final_gaps(experiment: str, panel_name: str, method_name: str, n_runs: int) -> np.ndarray:
    panel = EXPERIMENTS[experiment].panel(panel_name, "published")
    panel = replace(panel, every=panel.n_passes)
    method = next(m for m in panel.methods if m.name == method_name)
    job = Job(experiment, "linear", "published", panel, method, tuple(range(n_runs)), None, 2)
    return np.array([run.curves[0].values[-1] for run in linear_runs.execute(job)])


def small_cells():
    for experiment in ("zo-grid", "zo-importance"):
        for panel in SMALL:
            for method, figures in published_finals(experiment, panel, 200.0)["gap"].items():
                yield pytest.param(experiment, panel, method, figures["final"],
                                   id=f"{experiment}-{panel}-{method}")  # fmt: skip


@pytest.mark.parametrize(("experiment", "panel", "method", "final"), list(small_cells()))
def test_small_panels_agree_with_the_stored_figures(experiment, panel, method, final):
    """Means within 4.5 standard errors; the stored quartiles among the bulk of our runs."""
    gaps = final_gaps(experiment, panel, method, 60)
    error = np.hypot(final["std"] / np.sqrt(20), gaps.std() / np.sqrt(len(gaps)))
    assert abs(gaps.mean() - final["mean"]) <= 4.5 * error
    for name, low, high in (("q25", 0.02, 0.65), ("median", 0.12, 0.88), ("q75", 0.35, 0.98)):
        assert np.quantile(gaps, low) <= final[name] <= np.quantile(gaps, high), name


@pytest.mark.parametrize(("experiment", "panel"), list(OPTIMA))
def test_optima_are_those_of_the_problems(experiment, panel):
    row = EXPERIMENTS[experiment].panel(panel, "published").problem
    assert linear_runs.problem_data(row)[2] == pytest.approx(OPTIMA[experiment, panel], abs=1e-12)


def cells(experiment: str, panels: list[str]):
    for panel in panels:
        stored = published_curves(experiment, panel, os.environ["SCGD_PUBLISHED"])
        known = {m.name for m in EXPERIMENTS[experiment].panel(panel, "published").methods}
        for (_, method), (_, values) in stored.items():
            if method in known and len(values) > 1:
                ours = final_gaps(experiment, panel, method, N_RUNS)
                yield f"{panel} {method}", mannwhitneyu(values[:, -1], ours).pvalue


GRID = [f"{m}-n{n}-p{p}" for m in ("ridge", "logistic") for n in (1000, 5000) for p in (20, 50, 100, 200)]  # fmt: skip


@needs_curves
@pytest.mark.slow
@pytest.mark.parametrize(
    ("experiment", "panels"),
    [
        ("zo-linear", ["ridge-alpha5", "logistic-alpha5"]),
        ("zo-grid", GRID),
        ("zo-importance", GRID),
        ("fo-linear", ["logistic-alpha5"]),
    ],
)
def test_rank_tests_reject_no_cell(experiment, panels):
    names, pvalues = zip(*cells(experiment, panels), strict=True)
    order = np.argsort(pvalues)
    stepped = np.sort(pvalues) * np.arange(len(order), 0, -1)
    rejected = [
        names[i] for i, p in zip(order, np.maximum.accumulate(stepped), strict=True) if p < LEVEL
    ]
    assert rejected == []
