"""Each kernel of the solvers against its formula, one visit or one sweep at a time."""

import numba
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq

from scgd.linear import LOSSES, ascent, leap
from scgd.linear.anderson import DEPTH, Extrapolation
from scgd.linear.certificate import Best, balanced, dual_value
from scgd.linear.data import as_data, transposed
from scgd.linear.dual import unsigned
from scgd.linear.losses import (
    CROSS_ENTROPY,
    HINGE,
    LOGISTIC,
    SQUARED,
    SQUARED_HINGE,
    bend,
    curvature,
    difference,
    slope,
    value,
)
from scgd.linear.samples import conjugate
from scgd.linear.sweeps import correlate, curvatures, moved_margins, sweep
from scgd.linear.task import Design, Task

N, P = 7, 4
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, P)) * (RNG.random((N, P)) < 0.8)
D, R, U = RNG.random(N), RNG.normal(size=N), RNG.normal(size=N)
DIMMED = np.where(np.arange(N) == 1, 0.0, D)  # a slope without curvature still counts
CHOSEN = np.array([2, 0, 3])
KINDS = {"dense": np.asarray, "sparse": sparse.csc_array}


@pytest.fixture(autouse=True)
def no_prefetch_without_a_compiler(monkeypatch):
    if numba.config.DISABLE_JIT:
        monkeypatch.setattr(ascent, "prefetch", lambda array, i: None)


def columns(kind):
    return transposed(KINDS[kind](X))


def centre(kind):
    return np.array([0.3, -0.2, 0.5, 1.0]) if kind == "dense" else np.zeros(P)


@pytest.mark.parametrize("kind", KINDS)
def test_products_of_columns(kind):
    means, A = centre(kind), X - centre(kind)
    squares, products, out = np.full(P, -7.0), np.full(P, -7.0), np.empty(3)
    curvatures(*columns(kind), means, D, CHOSEN, squares, products)
    np.testing.assert_allclose(squares[CHOSEN], (D @ A**2)[CHOSEN])
    np.testing.assert_allclose(products[CHOSEN], (D @ A)[CHOSEN])
    assert squares[1] == products[1] == -7.0
    correlate(*columns(kind), means, CHOSEN, U, out)
    np.testing.assert_allclose(out, (A.T @ U)[CHOSEN])
    margins, moves = U.copy(), np.array([0.5, 0.0, -2.0])
    moved_margins(*columns(kind), means, CHOSEN, moves, margins)
    np.testing.assert_allclose(margins, U + A[:, CHOSEN] @ moves)


def test_some_columns_of_sparse_rows_under_their_own_numbers():
    twice = sparse.csr_array(X[[0, 1, 1, 2, 3, 4, 5]])
    for kind in (np.float64, np.float32):
        design = Design(twice.astype(kind))
        assert design.by_rows and not Design(twice.tocsc()).by_rows
        found, everything = design.some_columns(CHOSEN), transposed(design.X)
        for k in range(P):
            mine = slice(found.indptr[k], found.indptr[k + 1])
            part = slice(*(everything.indptr[k : k + 2] if k in CHOSEN else (0, 0)))
            for name in ("indices", "values"):
                np.testing.assert_array_equal(
                    getattr(found, name)[mine], getattr(everything, name)[part]
                )
        assert found.values.dtype == kind and len(found.values) == found.indptr[-1]
        squares = D @ twice.astype(kind).toarray().astype(np.float64) ** 2
        np.testing.assert_allclose(design.squares(D), squares, rtol=1e-14)
        np.testing.assert_array_equal(design.lengths, (twice.toarray() != 0).sum(axis=0))
    design.columns  # noqa: B018  made once, they stay
    assert not design.by_rows


def swept(w, slopes, offset, total, coords, l2, l1, damping, costs, A, bends):
    """Visit coordinates by the formulas, slopes being R + offset D."""
    w, slopes, sizes = w.copy(), slopes.copy(), []
    for k in CHOSEN[coords]:
        bend = bends[k] + l2
        if bend <= 0.0:
            sizes.append(0.0)
            continue
        goal = w[k] - (A[:, k] @ (slopes + offset * D) + l2 * w[k]) / bend
        goal = np.sign(goal) * max(abs(goal) - l1 / bend, 0.0)
        move = damping * (goal - w[k])
        sizes.append(abs(move) * np.sqrt(bend / (costs[k] if len(costs) else 1.0)))
        w[k] += move
        slopes += move * D * A[:, k]
        if total > 0.0:
            offset -= move * (D @ A[:, k]) / total
    return w, slopes, offset, sizes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("total", [0.0, float(D.sum())])
@pytest.mark.parametrize(
    ("l2", "l1", "damping"), [(0.1, 0.0, 1.0), (0.0, 0.3, 0.6), (0.2, 5.0, 1.0)]
)
@pytest.mark.parametrize("costs", [np.empty(0), np.array([1.0, 2.0, 0.5, 4.0])])
def test_a_sweep_minimises_along_each_column(kind, total, l2, l1, damping, costs):
    A, coords = X - centre(kind), np.array([1, 0, 2, 1, 0])
    products = D @ A
    bends = D @ A**2 - (products**2 / total if total else 0.0)
    bends[3] = 0.0  # nothing to gain there without a penalty
    start, offset = np.array([0.4, -0.3, 0.0, 0.2]), 0.25
    w, slopes, sizes = start.copy(), R.copy(), np.empty(5)
    found = sweep(*columns(kind), centre(kind), slopes, D, bends, products, costs, w, CHOSEN, coords,
                  sizes, l2, l1, total, offset, damping)  # fmt: skip
    expected = swept(start, R, offset, total, coords, l2, l1, damping, costs, A, bends)
    np.testing.assert_allclose(w, expected[0], atol=1e-12)
    np.testing.assert_allclose(slopes, expected[1], atol=1e-12)
    np.testing.assert_allclose(found, expected[2], atol=1e-12)
    np.testing.assert_allclose(sizes, expected[3], atol=1e-12)


SIGNS = np.where(np.arange(N) % 3, 1.0, -1.0)
CAPS = np.array([0.7, 5.0, 0.0, 1.3, 40.0, 0.2, 2.0])


def rows(kind):
    return unsigned(as_data(sparse.csr_array(X) if kind == "sparse" else X))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.0, 0.3])
@pytest.mark.parametrize("eps", [1e-10, 0.5])
def test_a_visit_of_the_logistic_dual_is_exact(kind, scale, eps):
    squares = (X**2).sum(axis=1) + scale
    alpha, u, w, b = np.zeros(N), np.zeros(N), np.array([0.2, -0.4, 0.1, 0.3]), 0.15
    order = np.array([0, 1, 2, 3, 4, 5, 6, 3, 0, 4, 1, 0])
    for i in order:
        before, gap_before, b_before = alpha.copy(), 0.0, b
        m, cap = SIGNS[i] * (X[i] @ w + b), CAPS[i]
        sizes, w_before = np.empty(1), w.copy()
        if alpha[i] > 0:
            gap_before = 0.5 * alpha[i] * (cap - alpha[i]) / cap * (u[i] + m) ** 2
        b, gap, n_moves = ascent.visit_logistic(
            *rows(kind), SIGNS, squares, CAPS, alpha, u, w, b, scale, np.array([i]), sizes, eps
        )
        assert gap == pytest.approx(gap_before, rel=1e-9, abs=1e-300)
        still = cap == 0.0 or (before[i] > 0 and abs(u[i] + m) < eps and alpha[i] == before[i])
        assert n_moves == (0 if still else 1)
        if not still:
            exact = brentq(
                lambda v, i=i, m=m, cap=cap, before=before: v + m
                + squares[i] * (cap / (1 + np.exp(-v)) - before[i]), -200, 200, xtol=1e-13,
            )  # fmt: skip
            left = u[i] + m + squares[i] * (alpha[i] - before[i])
            first = before[i] == 0.0
            started = (
                abs(exact + 1) + 1 if first else abs(np.log(before[i] / (cap - before[i])) + m)
            )
            assert abs(left) <= max(eps, 0.1 * max(started, 0.3 * squares[i] * cap)) + 1e-9
            np.testing.assert_allclose(alpha[i], cap / (1 + np.exp(-u[i])), rtol=1e-12)
        move = (alpha[i] - before[i]) * SIGNS[i]
        np.testing.assert_allclose(w, w_before + move * X[i], atol=1e-14)
        np.testing.assert_allclose(b, b_before + scale * move, atol=1e-14)
        np.testing.assert_allclose(sizes[0], abs(move) * np.sqrt(squares[i]), atol=1e-14)


@pytest.mark.parametrize("m", [-3.0, 0.2, 4.0])
@pytest.mark.parametrize(
    ("a", "cap", "start"), [(0.5, 1.0, 0.4), (3.0, 50.0, 20.0), (1e-3, 1.0, 0.9)]
)
def test_the_root_is_found_from_anywhere(m, a, cap, start):
    v = np.log(start / (cap - start))
    h, bend = v + m, 1.0 + a * start * (cap - start) / cap
    low, high = (-m, v) if h > 0 else (v, -m)
    found, alpha = ascent.logistic_root(v, m, a, cap, start, low, high, h, bend, 1e-12)
    for _ in range(40):  # each call takes nine tenths off at least
        left = found + m + a * (alpha - start)
        if abs(left) < 1e-11:
            break
        inside = sorted((found, found - left))
        found, alpha = ascent.logistic_root(
            found, m, a, cap, start, *inside, left, 1.0 + a * alpha * (cap - alpha) / cap, 1e-12
        )
    exact = brentq(lambda v: v + m + a * (cap / (1 + np.exp(-v)) - start), -100, 100, xtol=1e-14)
    assert found == pytest.approx(exact, abs=1e-9)
    assert alpha == pytest.approx(cap / (1 + np.exp(-exact)), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.0, 0.3])
@pytest.mark.parametrize("squared", [True, False])
def test_a_visit_of_the_hinge_dual_is_exact(kind, scale, squared):
    squares = (X**2).sum(axis=1) + scale
    caps = np.full(N, np.inf) if squared else CAPS
    bends = np.full(N, 0.4) if squared else np.zeros(N)
    alpha, w, b = np.linspace(0.0, 0.2, N), np.array([0.2, -0.4, 0.1, 0.3]), 0.15
    alpha = np.minimum(alpha, caps)
    for i in [0, 1, 2, 3, 4, 5, 6, 2, 0, 5]:
        start, w_before, b_before, sizes = alpha[i], w.copy(), b, np.empty(1)
        m = SIGNS[i] * (X[i] @ w + b)
        short = max(1.0 - m, 0.0)
        loss = short**2 / (2 * bends[i]) if squared else caps[i] * short
        gap_before = loss + start * (m - 1) + bends[i] * start**2 / 2
        b, gap, n_moves = ascent.visit_hinge(
            *rows(kind), SIGNS, squares, caps, bends, alpha, w, b, scale, np.array([i]), sizes
        )
        goal = start - (m - 1 + bends[i] * start) / (squares[i] + bends[i])
        goal = min(max(goal, 0.0), caps[i])
        assert gap == pytest.approx(gap_before, abs=1e-12)
        np.testing.assert_allclose(alpha[i], goal, atol=1e-14)
        np.testing.assert_allclose(w, w_before + (goal - start) * SIGNS[i] * X[i], atol=1e-14)
        np.testing.assert_allclose(b, b_before + scale * (goal - start) * SIGNS[i], atol=1e-14)
        np.testing.assert_allclose(sizes[0], abs(goal - start) * np.sqrt(squares[i]), atol=1e-14)
        assert n_moves == (goal != start)


def test_visits_follow_the_order():
    squares, sizes, order = (X**2).sum(axis=1), np.empty(3), np.array([4, 1, 4])
    one, other = np.zeros(P), np.zeros(P)
    alpha, beta = np.zeros(N), np.zeros(N)
    parts = (*rows("sparse"), SIGNS, squares, CAPS, np.zeros(N))
    _, gap, n_moves = ascent.visit_hinge(*parts, alpha, one, 0.0, 0.0, order, sizes)
    gaps, moves = 0.0, 0
    for t, i in enumerate(order):
        size = np.empty(1)
        _, g, k = ascent.visit_hinge(*parts, beta, other, 0.0, 0.0, np.array([i]), size)
        gaps, moves = gaps + g, moves + k
        assert size[0] == sizes[t]
    np.testing.assert_array_equal(one, other)
    assert gap == pytest.approx(gaps) and n_moves == moves


def penalised(kind=np.asarray, **parts):
    y = X @ [1.0, -1.0, 0.5, 2.0] + 0.1 * RNG.normal(size=N)
    given = {"loss": SQUARED, "epsilon": 0.0, "l2": 0.0, "l1": 0.05, "intercept": False} | parts
    return Task(Design(kind(X)), y, np.full(N, 1 / N), **given, tol=1e-9, max_passes=99, seed=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("l1", [0.0, 0.05, 0.4, 9.0])
@pytest.mark.parametrize("total", [False, True])
def test_a_leap_ends_at_the_minimum_of_the_model(kind, l1, total):
    problem = penalised(KINDS[kind], l1=l1, l2=0.02)
    means = centre(kind)
    D = DIMMED
    total = float(D.sum()) if total else 0.0
    A, known = X - means, leap.Products(problem, means, columns(kind), D, total)
    w, slopes, offset = np.array([0.3, -0.2, 0.1, 0.4]), R.copy(), 0.3 if total else 0.0
    used = np.array([0, 2, 3])
    before, here = w.copy(), offset
    after = leap.leap(known, used, w, slopes, here, 1e-20)
    moved = w - before
    assert moved[1] == 0.0
    np.testing.assert_allclose(slopes, R + D * (A @ moved), atol=1e-12)
    shift = -(D @ A @ moved) / total if total else 0.0
    np.testing.assert_allclose(after, here + shift, atol=1e-12)
    slope_ = A.T @ (slopes + after * D) + 0.02 * w
    on = used[w[used] != 0]
    np.testing.assert_allclose(slope_[on], -l1 * np.sign(w[on]), atol=1e-8)
    assert np.all(np.abs(slope_[used]) <= l1 + 1e-8)
    assert l1 < 9.0 or len(on) == 0


def test_products_are_remembered_and_forgotten(monkeypatch):
    problem = penalised()
    known = leap.Products(problem, centre("dense"), columns("dense"), D, 0.0)
    A = X - centre("dense")
    for used in ([2], [0, 2], [3, 1], [0, 1, 2, 3]):
        where = known.meet(np.array(used))
        np.testing.assert_allclose(known.rows[where], A[:, used].T * np.sqrt(D))
        np.testing.assert_allclose(
            known.gram[np.ix_(where, where)], (A[:, used].T * D) @ A[:, used], atol=1e-14
        )
    assert len(known.gram) == 4
    monkeypatch.setattr(leap, "MOST_IN_USE", 3)
    known.meet(np.array([0, 1]))
    assert len(known.gram) == 4
    known.meet(np.array([1]))
    assert len(known.gram) == 1 and known.place.tolist() == [-1, 0, -1, -1]


def test_when_a_leap_is_worth_its_products():
    problem = penalised()
    assert leap.sweeps_before_leap(problem, 0) == leap.sweeps_before_leap(problem, 1001) == np.inf
    assert (
        leap.sweeps_before_leap(problem, 80) == 4 and leap.sweeps_before_leap(problem, 1000) == 27
    )
    many = Task(Design(np.zeros((100_000, 12))), *([None] * 11))
    assert leap.sweeps_before_leap(many, 10) < np.inf == leap.sweeps_before_leap(many, 11)


@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_sweeps_with_products_stop_when_they_gain_little(l1):
    gram = np.array([[2.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 0.0]])
    slope_, w = np.array([1.0, -2.0, 5.0]), np.zeros(3)
    assert not leap.settling_sweeps(gram, slope_, w, l1, 1, 1e-9)
    first = -(np.sign(1.0) * max(1.0 - l1, 0.0)) / 2.0
    then = -2.0 + 0.9 * first
    second = -np.sign(then) * max(abs(then) - l1, 0.0)
    np.testing.assert_allclose(w, [first, second, 0.0])
    np.testing.assert_allclose(slope_, np.array([1.0, -2.0, 5.0]) + gram @ w)
    gains = 0.5 * (2.0 * first**2 + second**2)
    for enough, settled in ((gains * 1.001, True), (gains * 0.999, False)):
        again, there = np.array([1.0, -2.0, 5.0]), np.zeros(3)
        assert leap.settling_sweeps(gram, again, there, l1, 1, enough) is settled
    assert leap.settling_sweeps(gram, slope_, w, l1, 500, 1e-20)


def test_a_linear_map_is_extrapolated_to_its_fixed_point():
    rng = np.random.default_rng(0)
    M, c = (
        0.9 * np.linalg.qr(rng.normal(size=(DEPTH - 1, DEPTH - 1)))[0],
        rng.normal(size=DEPTH - 1),
    )
    fixed = np.linalg.solve(np.eye(DEPTH - 1) - M, c)
    memory, point = Extrapolation(), np.zeros(DEPTH - 1)
    for t in range(DEPTH + 1):
        found = memory.add(point, 2.0 * point + 1.0)
        assert (found is None) == (t < DEPTH)
        point = M @ point + c
    np.testing.assert_allclose(found[0], fixed, rtol=1e-4)
    np.testing.assert_allclose(found[1], 2.0 * found[0] + 1.0, rtol=1e-9)
    assert memory.add(point, point) is None  # it starts anew


def test_balanced_slopes_sum_to_nothing():
    problem, alone = penalised(intercept=True), penalised()
    for u in (U, -U, np.abs(U), np.zeros(N)):
        fixed = balanced(problem, u)
        assert abs(fixed.sum()) < 1e-14 and np.all(np.abs(fixed) <= np.abs(u))
        assert np.all(fixed * u >= 0) and balanced(alone, u) is u
    up = U * (U > 0)
    light = balanced(problem, U)
    heavy = U > 0 if up.sum() > -(U - up).sum() else U < 0
    np.testing.assert_array_equal(light[~heavy], U[~heavy])


@pytest.mark.parametrize(
    ("l2", "l1"), [(0.0, 0.05), (0.3, 0.0), (0.3, 0.05), (0.0, 0.0), (0.0, 50.0)]
)
def test_the_dual_value_is_that_of_the_conjugates(l2, l1):
    problem = penalised(l2=l2, l1=l1)
    u = U / N
    c = X.T @ u
    factor = 1.0
    if l2 == 0.0 and np.abs(c).max() > l1:
        factor = l1 / np.abs(c).max()
    r = factor * u * N
    expected = -np.mean(r * (0.5 * r + problem.y))
    if l2 > 0:
        expected -= np.sum(np.maximum(np.abs(c) - l1, 0) ** 2) / (2 * l2)
    if l2 == l1 == 0.0:
        expected = -np.inf
    assert dual_value(problem, u, c) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("z", [-1.7, 0.0, 0.4, 0.95, 3.0])
@pytest.mark.parametrize("d", [-0.8, 1e-9, 0.7])
def test_differences_and_slopes_of_losses(loss, z, d):
    code, epsilon, y = LOSSES.index(loss), 0.3, 0.3 if loss == "cross-entropy" else 1.0
    change = value(code, z + d, y, epsilon) - value(code, z, y, epsilon)
    assert difference(code, z, d, y, epsilon) == pytest.approx(change, rel=1e-6, abs=1e-15)
    h = 1e-6
    if abs(1 - y * z) > 2 * h:
        quotient = (value(code, z + h, y, epsilon) - value(code, z - h, y, epsilon)) / (2 * h)
        assert slope(code, z, y, epsilon) == pytest.approx(quotient, abs=1e-5)


def test_bounds_of_curvatures():
    bounds = [curvature(code, 0.5) for code in range(6)]
    assert bounds == [1.0, 0.25, 0.25, 2.0, 2.0, 1.0]
    assert curvature(HINGE, 0.0) == np.inf


def newton_by_hand(v, m, a, cap, start, low, high, h, bend, eps):
    """Solve as the kernel promises to: Newton inside the bracket, else its middle."""
    for _ in range(ascent.MOST_NEWTON):
        there = v - h / bend
        v = there if low <= there <= high else (low + high) / 2
        e = 1 / (1 + np.exp(-v))
        left = v + m + a * (cap * e - start)
        if abs(left) <= 0.1 * abs(h) or abs(left) < eps:
            break
        low, high = (low, v) if left > 0 else (v, high)
        bend, h = 1 + a * cap * e * (1 - e), left
    return v


@pytest.mark.parametrize("a", [0.5, 4.0, 30.0])
@pytest.mark.parametrize("v", [-6.0, -1.0, 5.0])
def test_the_way_to_the_root(a, v):
    m, cap, start = 0.7, 20.0, 1.0
    e = 1 / (1 + np.exp(-v))
    h, bend = v + m + a * (cap * e - start), 1 + a * cap * e * (1 - e)
    bracket = (-m - a * cap, -m + a * start)
    found = ascent.logistic_root(v, m, a, cap, start, *bracket, h, bend, 1e-9)[0]
    assert found == pytest.approx(newton_by_hand(v, m, a, cap, start, *bracket, h, bend, 1e-9))
    middle = ascent.logistic_root(0.0, 0.0, 1.0, 1.0, 0.5, 2.0, 4.0, 1.0, 1.0, 1e9)[0]
    assert middle == 3.0  # Newton's point is outside


@pytest.mark.parametrize("a", [0.1, 1.0, 6.0])
def test_the_first_visit_begins_between_its_bounds(a):
    row, cap = np.array([[np.sqrt(a)]]), 3.0
    alpha, u, w, sizes = np.zeros(1), np.zeros(1), np.array([0.2]), np.empty(1)
    m = row[0, 0] * 0.2
    v = -m - (0.3 * a * cap if a * cap >= 2 else 0.0)
    e = 1 / (1 + np.exp(-v))
    h, bend = v + m + a * cap * e, 1 + a * cap * e * (1 - e)
    expected = newton_by_hand(v, m, a, cap, 0.0, -m - a * cap, -m, h, bend, 1e-9)
    ascent.visit_logistic(*unsigned(as_data(row)), np.ones(1), np.array([a]), np.array([cap]), alpha,
                          u, w, 0.0, 0.0, np.zeros(1, int), sizes, 1e-9)  # fmt: skip
    assert u[0] == pytest.approx(expected)


def test_extrapolation_of_tiny_steps_along_a_line():
    memory, point = Extrapolation(), np.array([1.0 - 1e-9])
    for _ in range(DEPTH + 1):
        found = memory.add(point, point)
        point = 1.0 + 0.9 * (point - 1.0)
    assert abs(found[0][0] - 1.0) < 1e-11


def test_a_newton_step_keeps_signs(monkeypatch):
    monkeypatch.setattr(leap, "settling_sweeps", lambda *parts: False)
    monkeypatch.setattr(leap, "ROUNDS", 1)
    gram = np.array([[2.0, 0.3], [0.3, 1.0]])
    for start, whole in ((np.array([1.0, 1.5]), True), (np.array([0.1, 1.5]), False)):
        w, slope_ = start.copy(), np.array([0.5, 0.4])
        move, slope = -np.linalg.solve(gram, slope_ + 0.2), slope_.copy()
        assert (1.0 < -start[0] / move[0] < 4.0) if whole else 0 < -start[0] / move[0] < 1
        leap.settle(gram, slope_, w, 0.2, 0.0)
        alone = start[1] - (slope[1] + 0.2 - gram[1, 0] * start[0]) / gram[1, 1]  # w[0] is zero
        np.testing.assert_allclose(w, start + move if whole else [0.0, alone], atol=1e-10)
        np.testing.assert_allclose(slope_, [0.5, 0.4] + gram @ (w - start), atol=1e-12)


def gap_of(problem, w, b):
    best = Best(problem)
    best.value = np.inf
    best.look(w, b)
    return best.gap


def test_the_gap_at_the_solution_is_rounding():
    problem = penalised(l1=0.0, l2=0.5)
    w = np.linalg.solve(X.T @ X / N + 0.5 * np.eye(P), X.T @ problem.y / N)
    assert 0.0 < gap_of(problem, w, 0.0) < 1e-13


def test_the_gap_anywhere_is_the_objective_minus_the_dual():
    """Ridge with an intercept, from the formulas: u are the weighted slopes, their sum made zero."""
    problem = penalised(l1=0.0, l2=0.5, intercept=True)
    w, b = np.array([0.2, -0.1, 0.4, 0.3]), 0.7
    r = X @ w + b - problem.y
    u = np.where(r > 0, r / max(r[r > 0].sum() / -r[r < 0].sum(), 1.0), r)
    u = np.where(r < 0, u / max(-r[r < 0].sum() / r[r > 0].sum(), 1.0), u)
    primal = 0.5 * np.mean(r**2) + 0.25 * (w @ w)
    dual = -np.mean(0.5 * u**2 + u * problem.y) - 0.5 * np.sum((X.T @ u / N) ** 2) / 0.5
    assert gap_of(problem, w, b) == pytest.approx(primal - dual, rel=1e-12)


def test_slopes_just_outside_their_range_count_as_its_ends():
    one, past = np.ones(2), np.array([1.0 + 1e-12, 1.0])
    for loss, slopes, y in ((LOGISTIC, -past, one), (CROSS_ENTROPY, past, 0.0 * one)):
        np.testing.assert_array_equal(conjugate(loss, slopes, y, 0.0), [0.0, 0.0])


def test_a_move_of_one_moves_margins():
    margins = np.zeros(N)
    moved_margins(*columns("dense"), np.zeros(P), CHOSEN, np.ones(3), margins)
    np.testing.assert_allclose(margins, X[:, CHOSEN].sum(axis=1))


def test_corners_of_losses():
    huber = LOSSES.index("huber")
    assert slope(HINGE, 1.0, 1.0, 0.0) == 0.0 and slope(HINGE, 0.9, 1.0, 0.0) == -1.0
    assert [bend(huber, z, 0.0, 0.5, 0.0) for z in (0.5, 0.4)] == [0.0, 1.0]
    assert [bend(HINGE, z, 1.0, 0.5, 0.0) for z in (1.0, 0.5, 0.75)] == [0.0, 0.0, 2.0]
    assert [bend(HINGE, z, 1.0, 0.5, 0.1) for z in (1.05, 1.2)] == [2.0, 0.0]
    assert [bend(SQUARED_HINGE, z, 1.0, 0.0, 0.25) for z in (1.125, 1.25)] == [2.0, 0.0]
