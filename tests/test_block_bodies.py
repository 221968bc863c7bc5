"""Loops over blocks and joint moves: which point a value belongs to, and what they leave behind."""

import numpy as np
import pytest

from asking import in_pieces, run_with, same_run, same_state, steps_of, told
from registry import P
from scgd.descent.blocks import BlockLoop
from scgd.descent.joint import JointLoop, rewind
from scgd.estimators import random_bits
from test_agreement import BLOCKS, normal, python_pitted, python_quadratic, sampled
from test_agreement import stepping as optimizer
from test_bodies import bowl


def blocked(cls, **parts):
    opt = optimizer({**parts, "step": "rms"})
    body = cls(steps_of(opt), bowl, (), opt.run.ledger)
    body.engine.point.put(np.linspace(0.1, 0.9, P))
    size = body.engine.sampler.block_size
    body.downs[:], body.ups[:] = -np.arange(1.0, size + 1), np.arange(1.0, size + 1)
    return body, np.array([5, 2, 7])


def expected_points(x, coords, central):
    """Return the points of a block's values, in order."""
    points = [] if central else [x.copy()]
    for i, k in enumerate(coords):
        for entry in (-(i + 1.0), i + 1.0) if central else (i + 1.0,):
            point = x.copy()
            point[k] = entry
            points.append(point)
    return points


@pytest.mark.parametrize("estimator", ["central", "forward"])
def test_every_value_of_a_block_has_its_point(estimator):
    central = estimator == "central"
    body, coords = blocked(BlockLoop, block_size=3, estimator=estimator)
    x = body.engine.point.x
    points = expected_points(x, coords, central)
    for j, point in enumerate(points):
        np.testing.assert_array_equal(body._point(coords, j), point)
        body, coords = blocked(BlockLoop, block_size=3, estimator=estimator)
        values = [9.0] * len(points)
        values[j] = 4.0
        body._keep(coords, values)
        assert body.ledger.best.value == 4.0
        np.testing.assert_array_equal(body.ledger.best.x, point)
        body._keep(coords, [4.0] * len(points))
        np.testing.assert_array_equal(body.ledger.best.x, point)  # level: the first stays
        body._keep(coords, [np.nan] * len(points))
        assert body.ledger.best.value == 4.0


def test_both_values_of_a_joint_move_have_their_point():
    for j, entries in enumerate(([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0])):
        body, coords = blocked(JointLoop, block_size=3, estimator="spsa", replace=False)
        expected = body.engine.point.x.copy()
        expected[coords] = entries
        np.testing.assert_array_equal(body._point(coords, j), expected)
        body._keep(coords, (4.0, 9.0) if j == 0 else (9.0, 4.0))
        np.testing.assert_array_equal(body.ledger.best.x, expected)
        body._keep(coords, (4.0, 4.0))
        np.testing.assert_array_equal(body.ledger.best.x, expected)  # level: the first stays
        assert body.ledger.best.value == 4.0


@pytest.mark.parametrize("cls, parts", [(BlockLoop, {"block_size": 3}),
                                        (JointLoop, {"block_size": 3, "estimator": "spsa"})])  # fmt: skip
@pytest.mark.parametrize("given", [np.float32, np.float64, np.array, int])
def test_values_are_plain_numbers(cls, parts, given):
    body, coords = blocked(cls, **parts)
    body.call = lambda view: given(3.0)
    coords = coords.tolist() if cls is BlockLoop else coords
    assert {type(value) for value in body._values(coords)} == {float}
    np.testing.assert_array_equal(body.engine.point.buffer, body.engine.point.x)


@pytest.mark.parametrize("parts", ["central", "forward-distinct", "spsa-inverse", "forward-full"])
def test_block_loops_are_ask_and_tell(parts):
    keywords = {**BLOCKS[parts], "step": "rms", "scale": np.linspace(0.5, 2, P)}
    for fun, nonfinite in ((python_quadratic, "raise"), (python_pitted, "skip")):
        one, two = (optimizer(keywords, max_evals=160, failures=nonfinite) for _ in range(2))
        by_asking = told(one, fun)
        same_run(in_pieces(two, fun), by_asking)
        same_state(two, one)


def test_a_sum_that_overflows_is_no_loss():
    one, two = (optimizer({"block_size": 3, "step": "rms"}, max_evals=60) for _ in range(2))
    by_asking = told(one, lambda x: 1e308 + 1e306 * bowl(x))
    in_pieces(two, lambda x: 1e308 + 1e306 * bowl(x))
    same_state(two, one)
    assert by_asking.n_failed == two.run.ledger.n_failed == 0


@pytest.mark.parametrize(
    "cls, parts",
    [(BlockLoop, {"block_size": 3}), (JointLoop, {"estimator": "spsa", "block_size": 3})],
)
def test_samples_reach_blocks_and_joint_moves(cls, parts):
    one, two = (optimizer({**parts, "step": "rms"}, sample=normal, max_evals=90) for _ in range(2))
    by_asking = told(one, sampled)
    run_with(cls, two, sampled)
    same_run(two.result(), by_asking)
    same_state(two, one)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("n", [1, 8, 64, 65, 200])
def test_a_generator_is_put_back_to_before_its_bits(n, half):
    rng = np.random.Generator(np.random.PCG64(3))
    if half:  # a number of 32 bits leaves half a word
        rng.integers(0, 10, dtype=np.uint32)
    before = rng.bit_generator.state
    bits = random_bits(n, rng)
    assert rng.bit_generator.state != before
    rewind(rng, bits)
    assert rng.bit_generator.state == before
    np.testing.assert_array_equal(random_bits(n, rng), bits)
