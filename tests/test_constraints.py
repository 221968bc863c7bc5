"""Constraints: linear ones at every evaluation, nonlinear ones at the answer, or it says so."""

from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, NonlinearConstraint

import scgd
from asking import same_run
from scgd.constraints import Constraints, Merit, Polyhedron
from scgd.constraints.feasibility import by_feasibility
from scgd.problem import Problem
from scgd.strategies.asks import Report
from scgd.strategies.budget import Budget
from skeletons import run_page

DOCS = Path(__file__).parents[1] / "docs"
FREE = np.full(4, np.inf)


# ---- projection ------------------------------------------------------------------------------------


def nearest(polyhedron, z):
    """Return the nearest point by a solver that knows nothing of ours."""
    limits = LinearConstraint(polyhedron.rows, polyhedron.low, polyhedron.high)
    return scipy.optimize.minimize(
        lambda x: 0.5 * np.sum((x - z) ** 2), np.full(len(z), 0.25), jac=lambda x: x - z,
        method="SLSQP", constraints=[limits], options={"ftol": 1e-14, "maxiter": 500},
        bounds=scipy.optimize.Bounds(polyhedron.lower, polyhedron.upper),
    ).x  # fmt: skip


SHAPES = {
    "simplex": Polyhedron(np.ones((1, 4)), [1.0], [1.0], np.zeros(4), FREE),
    "weighted": Polyhedron([[1.0, -2.0, 0.0, 3.0]], [0.5], [0.5], np.full(4, -1.0), np.ones(4)),
    "plane": Polyhedron([[1.0, 2.0, 0.0, -1.0]], [2.0], [2.0], -FREE, FREE),
    "half": Polyhedron([[1.0, 1.0, 1.0, 1.0]], [-np.inf], [1.0], np.zeros(4), FREE),
    "two": Polyhedron(
        [[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]], [1.0, -1.0], [1.0, 0.5], np.zeros(4), FREE
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("ignore")
def test_the_projection_is_the_nearest_point(shape):
    rng = np.random.default_rng(0)
    for _ in range(5):
        z = 2 * rng.standard_normal(4)
        x = SHAPES[shape](z)
        assert SHAPES[shape].violation(x) < 1e-12
        np.testing.assert_allclose(x, nearest(SHAPES[shape], z), atol=1e-6)


@given(st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4), st.sampled_from(sorted(SHAPES)))
def test_projections_are_inside_and_stay(z, shape):
    """Feasible, idempotent, and no vertex of the hull is nearer: <z - P z, y - P z> <= 0."""
    polyhedron, z = SHAPES[shape], np.array(z)
    x = polyhedron(z)
    assert polyhedron.violation(x) <= 1e-9 * max(1, np.abs(z).max())
    np.testing.assert_allclose(polyhedron(x), x, atol=1e-9 * max(1, np.abs(z).max()))
    other = polyhedron(np.full(4, 0.3))
    assert (z - x) @ (other - x) <= 1e-7 * max(1, np.abs(z).max()) ** 2


def test_an_empty_polyhedron_is_refused():
    with pytest.raises(ValueError, match="constraints and bounds leave no point"):
        scgd.minimize(
            sphere, np.ones(3), bounds=[(0, 1)] * 3, constraints=LinearConstraint(np.ones(3), 5, 5)
        )
    rows = LinearConstraint(np.array([[1.0, 0, 0], [1.0, 0, 0]]), [1, 2], [1, 2])
    with pytest.raises(ValueError, match="constraints and bounds leave no point"):
        scgd.minimize(sphere, np.ones(3), constraints=rows)


# ---- feasible points first --------------------------------------------------------------------------


def points_after(run, rows):
    """Send measurements; return the next points, whatever is reported in between."""
    asked = run.send(rows)
    while isinstance(asked, Report):
        asked = run.send(None)
    return asked


def test_violations_count_until_a_point_is_feasible_and_then_f_and_a_penalty():
    """Of f = 0 to 11 and 20 the median differs by 3: that is what the largest violation costs."""
    told, known = [], []

    def method(problem, budget, rng):
        known.append(problem.known)
        while True:
            told.append((yield np.zeros((1, 2))))

    problem, merit = Problem.check(np.zeros(2)), merit_of(0, 1)
    run = by_feasibility(method, merit)(problem, Budget(100, 2), np.random.default_rng(0))
    points_after(run, None)
    for f in range(12):
        points_after(run, np.array([[f, 1.0 - f / 20, 0.0]]))
    np.testing.assert_allclose(np.ravel(told), 1 - np.arange(12) / 20)  # whatever f is
    points_after(run, np.array([[20.0, -1.0, 0.0]]))
    penalised = np.arange(12) + 3 * (1 - np.arange(12) / 20)
    np.testing.assert_allclose(known[-1].values, [*penalised, 20.0])  # it begins again
    points_after(run, np.array([[30.0, 0.5, 0.0]]))
    points_after(run, np.array([[25.0, -0.5, 0.0]]))
    np.testing.assert_allclose(np.ravel(told[-2:]), [30 + 3 * 0.5, 25.0])


# ---- the augmented Lagrangian ----------------------------------------------------------------------


def merit_of(n_equal, n_below):
    """Return the merit of so many residuals."""
    low = np.r_[np.zeros(n_equal), np.full(n_below, -np.inf)]
    limit = NonlinearConstraint(
        lambda x: np.zeros(n_equal + n_below), low, np.zeros(n_equal + n_below)
    )
    return Merit(Constraints.check(limit, Problem.check(np.zeros(2))), 2)


def test_the_formula():
    merit = merit_of(1, 2)
    merit.weights[:], merit.multipliers[:] = [3.0, 2.0, 4.0, 5.0], [0.5, 0.25, 0.1]
    merit.margins[:] = [0.0, 0.01, 0.0]
    f, h, g, away = 7.0, -0.3, np.array([0.2, -0.5]), 0.1
    shifted = g + np.array([0.01, 0.0])
    push = np.maximum(0, np.array([0.25, 0.1]) + np.array([4.0, 5.0]) * shifted)
    below = (push**2 - np.array([0.25, 0.1]) ** 2) / (2 * np.array([4.0, 5.0]))
    wanted = f + 0.5 * h + 2.0 / 2 * h**2 + below.sum() + 3.0 / 2 * away**2
    assert merit(np.array([[f, h, *g, away]]))[0] == pytest.approx(wanted, rel=1e-14)


@pytest.mark.parametrize(
    ("f", "g", "size_f", "size_g"),
    [
        ([100, 102, 104, 94], [0.3, 0.3, 0.3, 0.3], 4.0, 1.0),  # a residual that never changed
        ([-50, -50, -50, -50], [0.3, 0.8, -0.2, 0.8], 50.0, 0.5),  # f never changed: |f|
        ([0.1, 0.1, 0.1, 0.1], [0.3, 0.8, -0.2, 0.8], 1.0, 0.5),  # ... and at least 1
    ],
)
def test_weights_begin_with_the_usual_changes_of_f_and_of_the_residuals(f, g, size_f, size_g):
    merit = merit_of(0, 1)
    merit.vectors = np.column_stack([f, g, np.zeros(4)]).astype(float)
    merit.begin(np.array([[3.0, 4.0], [3.0, 4.0], [0.0, 1.0]]))
    np.testing.assert_allclose(merit.weights, [2 * size_f / 25, size_f / size_g**2])


def test_multipliers_follow_the_residuals():
    merit = merit_of(1, 2)
    merit.weights[:], merit.multipliers[:] = [1.0, 2.0, 4.0, 4.0], [0.5, 0.25, 0.1]
    merit.vectors = np.array([[1.0, 0.3, 0.2, -0.5, 0.0]])
    merit.learn(np.zeros(2))
    np.testing.assert_allclose(merit.multipliers, [0.5 + 2 * 0.3, 0.25 + 4 * 0.2, 0.0])
    np.testing.assert_allclose(merit.margins, [0.0, 0.2, 0.0])
    np.testing.assert_allclose(merit.weights[1:], [2.0, 4.0, 4.0])  # nothing to compare with yet
    merit.vectors = np.array([[1.0, 0.3, 0.01, -0.5, 0.0]])
    merit.learn(np.zeros(2))
    np.testing.assert_allclose(
        merit.weights[1:], [20.0, 40.0, 4.0]
    )  # what did not fall gets heavier


def test_a_noisy_equation_holds_where_noise_hides_what_is_missing():
    """Its residual counts less its standard error, whatever its sign."""
    for sign in (1, -1):
        merit = merit_of(1, 0)
        for mean, violation in ((0.5, 0.4), (0.05, 0.0)):
            residuals = sign * (mean + 0.2 * np.array([-1, 1, -1, 1]) * np.sqrt(3 / 4))
            merit.vectors = np.column_stack([np.arange(4.0), residuals, np.zeros(4)])
            merit.learn(np.full(2, mean))
            assert merit.best[3] == pytest.approx(violation, abs=1e-12)
        assert merit.feasible


def test_feasible_points_come_first_then_lower_ones_then_nearer_ones():
    merit = merit_of(0, 1)
    seen = []
    for value, violation in [
        (5.0, 0.3),
        (9.0, 0.2),
        (1.0, 0.25),
        (8.0, -1.0),
        (7.0, 1e-9),
        (6.0, 0.1),
    ]:
        merit.offer(np.array([value, violation, 0.0]), np.full(2, value))
        seen.append(merit.best[1])
    assert seen == [5.0, 9.0, 9.0, 8.0, 7.0, 7.0]


def test_the_order_of_arrival_does_not_matter_where_points_are_as_good():
    points = [np.array([1.0, 0.0]), np.array([0.0, 1.0])]
    for order in (points, points[::-1]):
        merit = merit_of(0, 1)
        for z in order:
            merit.offer(np.array([3.0, -1.0, 0.0]), z)
        assert merit.best[0].tolist() == [0.0, 1.0]


# ---- whole runs ------------------------------------------------------------------------------------


def sphere(x, *rest):
    return float(np.sum((x - 1) ** 2))


def disc(x):
    return x @ x


DISC = NonlinearConstraint(disc, -np.inf, 1.0)
PLANE = LinearConstraint(np.ones(4), 1.0, 1.0)


def test_the_simplex_at_every_evaluation():
    goal = np.array([0.5, 0.3, -0.4, 0.1])

    def fun(x):
        assert abs(x.sum() - 1) < 1e-12 and x.min() >= 0
        return float(np.sum((x - goal) ** 2))

    result = scgd.minimize(
        fun, np.full(4, 0.25), bounds=[(0, None)] * 4, constraints=PLANE, max_evals=1500, seed=0
    )
    np.testing.assert_allclose(result.x, SHAPES["simplex"](goal), atol=1e-4)
    assert result.maxcv == 0.0 and result.success and result.nfev <= 1500


@pytest.mark.parametrize("method", ["auto", "musketeer", "spsa"])
def test_a_disc_with_any_method(method):
    result = scgd.minimize(
        sphere, np.zeros(3), method=method, constraints=DISC, scale=1.0, max_evals=3000, seed=0
    )
    best = (np.sqrt(3) - 1) ** 2
    assert result.maxcv == 0.0 and disc(result.x) <= 1 + 1e-8 and result.success
    assert result.fun == pytest.approx(sphere(result.x)) and result.fun < best + 0.03
    if method == "auto":
        assert abs(result.fun - best) < 1e-6


def test_equations_and_both_kinds_together():
    """min x0^2 + 2 x1^2 + x2^2 with x0 x1 = 1/4 and x0 + x1 + x2 = 2: checked against SLSQP."""

    def fun(x):
        return float(x[0] ** 2 + 2 * x[1] ** 2 + x[2] ** 2)

    rules = [
        NonlinearConstraint(lambda x: x[0] * x[1], 0.25, 0.25),
        LinearConstraint(np.ones(3), 2, 2),
    ]
    x0 = np.array([1.0, 0.5, 0.5])
    result = scgd.minimize(fun, x0, constraints=rules, max_evals=4000, seed=0)
    rival = scipy.optimize.minimize(fun, x0, method="SLSQP", constraints=rules)
    assert result.maxcv == 0.0 and abs(result.x[0] * result.x[1] - 0.25) <= 1e-8
    assert result.x.sum() == pytest.approx(2.0, abs=1e-12)
    assert result.fun == pytest.approx(rival.fun, abs=1e-5)


def test_maximum_target_and_bounds():
    result = scgd.minimize(
        lambda x: float(x.sum()), np.zeros(2), constraints=DISC, bounds=[(-1, 0.5)] * 2,
        maximize=True, target=0.98, max_evals=3000, seed=0,
    )  # fmt: skip
    assert result.status == 0 and 0.98 <= result.fun <= 1.0 and np.all(result.x <= 0.5)
    assert result.fun == pytest.approx(result.x.sum())


def test_a_run_without_a_feasible_point_says_so():
    never = NonlinearConstraint(lambda x: x @ x, -np.inf, -0.5)
    result = scgd.minimize(sphere, np.ones(2), constraints=never, max_evals=600, seed=0)
    assert not result.success and result.maxcv == pytest.approx(0.5, abs=1e-3)
    assert "No feasible point seen, least violation 0.5" in result.message


@pytest.mark.parametrize("sampled", [False, True])
def test_noise_in_f_and_in_the_constraint(sampled):
    for seed in range(2):
        rng = np.random.default_rng(seed)

        def fun(x, *rest):
            noise = rest[0] if rest else rng.normal()  # noqa: B023
            return sphere(x) + 0.05 * noise

        spread = 0.0 if sampled else 0.01  # a sample does not control the noise of constraints
        limit = NonlinearConstraint(lambda x: x @ x + spread * rng.normal(), -np.inf, 1.0)  # noqa: B023
        sample = (lambda g: g.normal()) if sampled else None
        result = scgd.minimize(
            fun, np.zeros(3), constraints=limit, sample=sample, scale=1.0, max_evals=4000, seed=seed
        )
        assert disc(result.x) < 1.05 and sphere(result.x) < 1.0, result.x
        assert result.fun_error > 0


@pytest.mark.parametrize("workers", [2, scgd.Workers(asynchronous=20)])
def test_whoever_evaluates(workers):
    keywords = {"constraints": DISC, "scale": 1.0, "max_evals": 400, "seed": 0}
    result = scgd.minimize(sphere, np.zeros(3), workers=workers, **keywords)
    assert result.nfev <= 400 and result.maxcv == 0.0
    if workers == 2:
        same_run(result, scgd.minimize(sphere, np.zeros(3), **keywords))


def test_failures_are_counted():
    def fun(x):
        if x[0] > 0.5:
            raise RuntimeError
        return sphere(x)

    def limit(x):
        if x[1] > 0.55:
            raise RuntimeError
        return disc(x)

    rule = NonlinearConstraint(limit, -np.inf, 1.0)
    result = scgd.minimize(
        fun, np.zeros(3), constraints=rule, max_evals=600, scale=1.0, seed=0, failures=RuntimeError
    )
    assert (
        result.n_failed > 0 and result.maxcv == 0.0 and result.x[0] <= 0.5 and result.x[1] <= 0.55
    )


@pytest.mark.parametrize("n", [5, 40, 150, 333])
@pytest.mark.parametrize("method", ["auto", "uniform"])
def test_constrained_runs_resume_bit_for_bit(n, method, tmp_path):
    keywords = {"constraints": [DISC, LinearConstraint([[1.0, 1, 0]], -1, 1)], "method": method}
    keywords |= {"scale": 1.0, "max_evals": 500, "seed": 0}
    calls = [0]

    def cut(x):
        calls[0] += 1
        if calls[0] == n:
            raise OSError("power")
        return sphere(x)

    with pytest.raises(OSError, match="power"):
        scgd.minimize(cut, np.zeros(3), checkpoint=str(tmp_path / "run"), **keywords)
    again = scgd.minimize(sphere, np.zeros(3), checkpoint=str(tmp_path / "run"), **keywords)
    same_run(again, scgd.minimize(sphere, np.zeros(3), **keywords))


def test_ask_and_tell_with_constraints(tmp_path):
    opt = scgd.Optimizer(
        np.full(4, 0.25), bounds=[(0, 1)] * 4, constraints=PLANE, max_evals=200, seed=0
    )
    while not opt.done:
        for trial in opt.ask(7):
            assert trial.x.sum() == pytest.approx(1.0) and trial.x.min() >= 0
            opt.tell(trial.id, float(np.sum((trial.x - [0.7, 0.2, 0.0, 0.4]) ** 2)))
        opt.save(tmp_path / "run.npz")
        opt = scgd.Optimizer.load(tmp_path / "run.npz")
    result = opt.result()
    assert result.nfev <= 200 and result.fun < 0.05 and result.x.sum() == pytest.approx(1.0)


def test_ask_and_tell_with_a_nonlinear_constraint(tmp_path):
    opt = scgd.Optimizer(np.zeros(3), constraints=DISC, scale=1.0, max_evals=300, seed=0)
    for _ in range(3):
        trials = opt.ask(11)
        opt.tell([t.id for t in trials], [sphere(t.x) for t in trials])
    opt.save(tmp_path / "run.npz")
    with pytest.raises(scgd.CheckpointError, match="constraints is a function"):
        scgd.Optimizer.load(tmp_path / "run.npz")
    again = scgd.Optimizer.load(tmp_path / "run.npz", constraints=DISC)
    for one in (opt, again):
        while not one.done:
            trials = one.ask(11)
            one.tell([t.id for t in trials], [sphere(t.x) for t in trials])
    same_run(again.result(), opt.result())
    assert disc(opt.x) <= 1 + 1e-8 and sphere(opt.x) < 0.9


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(DOCS / "constraints.md")


# ---- small budgets, walls and failures -----------------------------------------------------------

LIMITS = [
    LinearConstraint(np.ones((1, 2)), -np.inf, 1.0),
    NonlinearConstraint(lambda x: float(x @ x), -np.inf, 0.9),
]


@pytest.mark.parametrize("limit", LIMITS, ids=["linear", "nonlinear"])
@pytest.mark.parametrize("n", [1, 2, 4, 9])
def test_few_evaluations_return_the_best_point_seen(limit, n):
    result = scgd.minimize(
        lambda x: float(np.sum((x + 1) ** 2)), [0.3, 0.4], constraints=limit, max_evals=n, seed=0
    )
    assert result.nfev == n and result.maxcv == 0.0
    assert result.fun == np.sum((result.x + 1) ** 2) <= 1.3**2 + 1.4**2
    assert "inf" not in result.message


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("limit", LIMITS, ids=["linear", "nonlinear"])
def test_a_start_in_the_corner(limit):
    result = scgd.minimize(
        lambda x: float(np.sum((x - 0.6) ** 2)), [0.2, 0.2], bounds=[(0.2, 2.0)] * 2,
        constraints=limit, max_evals=300, seed=1,
    )  # fmt: skip
    assert result.success and result.fun < 0.04


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("limit", LIMITS, ids=["linear", "nonlinear"])
@pytest.mark.parametrize("n", [1, 40])
def test_nothing_but_failures_return_the_start(limit, n):
    result = scgd.minimize(
        lambda x: float("nan"), [0.3, 0.4], bounds=[(0.2, 2.0)] * 2, constraints=limit,
        max_evals=n, seed=0, failures="skip",
    )  # fmt: skip
    assert result.status == 7 and result.x.tolist() == [0.3, 0.4]
    assert "inf" not in result.message


@pytest.mark.parametrize("p", [2, 30, 150])
def test_a_limit_that_leaves_one_point_holds_at_every_evaluation(p):
    points = []

    def fun(x):
        points.append(x.copy())
        return float(x @ x)

    limit = LinearConstraint(np.ones((1, p)), -np.inf, 0.3 * p)
    scgd.minimize(
        fun, np.full(p, 0.3), constraints=limit, bounds=[(0.3, 2.0)] * p, max_evals=12, seed=2
    )
    assert np.sum(points, axis=1).max() <= 0.3 * p + 1e-9 and np.min(points) >= 0.3
