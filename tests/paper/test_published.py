"""Runs with our own draws have the distribution of the published runs."""

import csv
from pathlib import Path

import numpy as np
import pytest
from published import (
    METHODS,
    WITH_IMPORTANCE,
    curves,
    first_order_problem,
    needs_curves,
    run_first_order,
    run_zeroth_order,
    zeroth_order_problem,
)
from scipy.stats import mannwhitneyu

N_RUNS = 200
LEVEL = 1e-3
FINALS = Path(__file__).with_name("finals.csv")


def holm(pvalues):
    """Adjust p-values for their number by Holm's step-down rule."""
    pvalues = np.asarray(pvalues)
    order = np.argsort(pvalues)
    stepped = np.maximum.accumulate(pvalues[order] * np.arange(len(order), 0, -1))
    adjusted = np.empty_like(stepped)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def zeroth_order_cells(kind):
    """Yield (name, published final gaps, our final gaps) for every cell of a kind."""
    problem = zeroth_order_problem(kind)
    for method, runs in curves(f"zo_{kind}_alpha5").items():
        ours = run_zeroth_order(kind, method, problem, range(N_RUNS))[:, -1]
        yield f"{kind} alpha5 {method}", runs[:, -1] - problem.f_star, ours - problem.f_star
    for n_samples in (1000, 5000):
        for key, runs in curves(f"zo_{kind}_n{n_samples}").items():
            size, method = key.split("/")
            problem = zeroth_order_problem(kind, n_samples, int(size[1:]))
            ours = run_zeroth_order(kind, method, problem, range(N_RUNS))[:, -1]
            yield f"{kind} n{n_samples} {key}", runs[:, -1], ours - problem.f_star


def first_order_cells():
    problem = first_order_problem("logistic")
    for method, runs in curves("fo_logistic_alpha5").items():
        ours = run_first_order("logistic", method, problem, range(N_RUNS))[:, -1]
        yield f"first order {method}", runs[:, -1], ours


@needs_curves
@pytest.mark.slow
def test_rank_tests_reject_no_cell():
    cells = [*zeroth_order_cells("ridge"), *zeroth_order_cells("logistic"), *first_order_cells()]
    assert len(cells) == 2 * (len(METHODS) + 8 * len(METHODS + WITH_IMPORTANCE)) + 4
    adjusted = holm([mannwhitneyu(theirs, ours).pvalue for _, theirs, ours in cells])
    rejected = [(cells[i][0], adjusted[i]) for i in np.flatnonzero(adjusted < LEVEL)]
    assert not rejected


@needs_curves
@pytest.mark.slow
@pytest.mark.parametrize("method", ["sgd", "uniform", "musketeer", "adaptive"])
def test_first_order_ridge_means_lie_in_their_interval(method):
    problem = first_order_problem("ridge")
    ours = run_first_order("ridge", method, problem, range(N_RUNS))[:, -1] - problem.f_star
    rng = np.random.default_rng(0)
    means = rng.choice(ours, (100_000, 20)).mean(axis=1)
    low, high = np.quantile(means, [0.0005, 0.9995])
    theirs = curves("fo_ridge_alpha5")[method][-1] - problem.f_star
    assert low <= theirs <= high


def recorded():
    with FINALS.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("cell", recorded(), ids=lambda cell: f"{cell['panel']}-{cell['method']}")
def test_final_gaps_agree_with_the_recorded_figures(cell):
    """Means within 4.5 standard errors, and the recorded quartiles among the bulk of our runs."""
    kind, n_samples, n_coords = cell["panel"].split("/")
    problem = zeroth_order_problem(kind, int(n_samples), int(n_coords))
    gaps = run_zeroth_order(kind, cell["method"], problem, range(60))[:, -1] - problem.f_star
    error = np.hypot(float(cell["std"]) / np.sqrt(20), gaps.std() / np.sqrt(len(gaps)))
    assert abs(gaps.mean() - float(cell["mean"])) <= 4.5 * error
    for name, low, high in (("q1", 0.02, 0.65), ("median", 0.12, 0.88), ("q3", 0.35, 0.98)):
        assert np.quantile(gaps, low) <= float(cell[name]) <= np.quantile(gaps, high), name
