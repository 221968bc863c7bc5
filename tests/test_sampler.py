"""The sampler: blocks, phases, draws ahead, and what a state may hold."""

import numpy as np
import pytest

from registry import P
from scgd.policies import (
    Full,
    GaussSouthwell,
    Musketeer,
    Policy,
    Uniform,
    draw_without_replacement,
)
from scgd.random import stream
from scgd.sampler import LARGEST, CoordinateSampler, check_array, check_names


def make(policy=None, n=P, seed=0, **more):
    policy = Musketeer(length=6) if policy is None else policy
    return CoordinateSampler(policy, n, stream(np.random.SeedSequence(seed)), **more)


class Prepared(Policy):
    """Draws what it was made with, phase after phase."""

    def __init__(self, coords, probs=0.25):
        self.coords, self.probs = coords, probs

    def phase_length(self, n_coords):
        return len(self.coords)

    def init(self, n_coords, replace=True):
        return ()

    def draw(self, state, stream, coords, probs, block, replace):
        coords[:], probs[:] = self.coords[: len(coords)], self.probs


@pytest.mark.parametrize(
    "coords, probs, message",
    [
        ([0, 1, 2, 2], 0.25, "a coordinate twice where none may be.*draw_without_replacement"),
        ([0, 1, 2, P], 0.25, "coordinates outside of 0 to 11"),
        ([0, -1, 2, 3], 0.25, "coordinates outside of 0 to 11"),
        ([0, 1, 2, 3], 0.0, "probabilities outside"),
    ],
)
def test_wrong_draws_of_a_policy_of_ones_own_are_refused(coords, probs, message):
    with pytest.raises(ValueError, match=f"Prepared (drew|gave) .*{message}"):
        make(Prepared(coords, probs), block_size=2, replace=False)


def test_a_block_may_repeat_a_coordinate_with_replacement_or_in_another_block():
    assert make(Prepared([0, 1, 2, 2]), block_size=2).n_steps == 2
    assert make(Prepared([0, 1, 1, 0]), block_size=2, replace=False).n_steps == 2


def test_draws_without_replacement_have_their_inclusion_probabilities():
    weights, words = np.array([4.0, 2.0, 1.0, 1.0, 0.0]), stream(np.random.SeedSequence(1))
    coords, probs, counts, n = np.zeros(2, np.int64), np.zeros(2), np.zeros(5), 4000
    for _ in range(n):
        draw_without_replacement(weights, words, coords, probs)
        assert coords[0] != coords[1]
        np.testing.assert_allclose(2 * probs, np.minimum(1.0, weights[coords] / 4))
        counts[coords] += 1
    expected = np.array([1.0, 0.5, 0.25, 0.25, 0.0])
    assert np.all(abs(counts / n - expected) <= 4 * np.sqrt(expected * (1 - expected) / n))


# ---- blocks and phases ---------------------------------------------------------------------------


@pytest.mark.parametrize("length, block, n_steps", [(6, 1, 6), (6, 4, 2), (8, 4, 2), (9, 4, 3)])
def test_a_phase_is_a_whole_number_of_steps(length, block, n_steps):
    sampler = make(Musketeer(length=length), block_size=block)
    assert sampler.n_steps == n_steps and sampler.n_draws == n_steps * block
    assert len(sampler.coords) == len(sampler.probs) == len(sampler.grads) == sampler.n_draws
    assert (sampler.position, sampler.n_phases, sampler.ahead) == (0, 0, False)


def test_how_large_a_block_may_be():
    assert make(block_size=P, replace=False).block_size == P
    assert make(block_size=P + 1).block_size == P + 1  # with replacement coordinates may repeat
    for size, replace in ((0, True), (0, False), (P + 1, False), (-1, True)):
        with pytest.raises(ValueError, match=f"between 1 and the 12 coordinates, got {size}"):
            make(block_size=size, replace=replace)
    assert make(replace=False).replace is True  # one coordinate cannot repeat
    assert make(block_size=2, replace=False).replace is False and make(block_size=2).replace is True
    assert make(Full(), block_size=2).block_size == P
    with pytest.raises(TypeError, match="policy must be a scgd"):
        make("uniform")


def test_blocks_are_slices_of_the_phase_and_gradients_stand_beside_them():
    sampler = make(block_size=3)
    drawn = sampler.coords.copy()
    assert len(set(drawn.tolist())) > 1
    for step, ended in ((0, False), (1, True)):
        coords, probs = sampler.block()
        assert sampler.position == 3 * step
        np.testing.assert_array_equal(coords, drawn[3 * step : 3 * step + 3])
        np.testing.assert_allclose(probs, 1 / P)
        if step == 0:
            assert sampler.record(np.full(3, 5.0)) is ended
            np.testing.assert_array_equal(sampler.grads, [5.0] * 3 + [0.0] * 3)
        else:
            assert sampler.record(np.full(3, 7.0)) is ended
    assert (sampler.position, sampler.n_phases) == (0, 1)
    assert sampler.weights()[drawn[0]] > 1 / P  # it has learnt
    assert np.any(sampler.coords != drawn)


def test_the_share_of_the_uniform_law_is_that_of_the_phase_that_ended():
    shares = []

    def mixing(n):
        return np.where(n == 1, 1.0, 0.0)

    sampler = make(Musketeer(length=4, mixing=mixing))
    for _ in range(2):
        for _ in range(4):
            sampler.block()
            sampler.record(np.array([3.0]))
        shares.append(np.ptp(sampler.weights()))
    assert shares[0] == pytest.approx(0.0, abs=1e-15) and shares[1] > 0.01


def test_draws_may_be_counted_many_at_a_time():
    sampler = make()
    sampler.grads[:] = 2.0
    assert sampler.advance(5) is False and sampler.position == 5
    assert sampler.advance(1) is True and sampler.position == 0 and sampler.n_phases == 1


def test_a_block_drawn_ahead_is_fresh_and_placed_later():
    sampler, other = make(block_size=3), make(block_size=3)
    buffer = sampler.coords.copy()
    sampler.ahead = True
    coords, probs = sampler.block()
    again, _ = sampler.block()
    np.testing.assert_array_equal(sampler.coords, buffer)
    np.testing.assert_allclose(probs, 1 / P)
    expected = np.zeros(3, np.int64), np.ones(3)
    other.policy.draw(other.state, other.stream, *expected, 3, True)
    np.testing.assert_array_equal(coords, expected[0])
    assert np.any(again != coords)
    sampler.advance(3)
    sampler.place(coords, 0.25 * np.ones(3))
    np.testing.assert_array_equal(sampler.coords, [*buffer[:3], *coords])
    np.testing.assert_array_equal(sampler.probs[3:], 0.25)


def test_who_looks_at_gradients_chooses_when_the_block_is_asked():
    sampler = make(GaussSouthwell())
    before = sampler.stream.copy()
    gradient = np.zeros(P)
    gradient[7] = -3.0
    coords, _ = sampler.block(gradient)
    assert coords.tolist() == [7] and sampler.coords.tolist() == [7]
    assert sampler.record(np.array([-3.0])) is True
    np.testing.assert_array_equal(before, make(GaussSouthwell()).stream)
    plain = make(Uniform())
    plain.block(gradient)  # which others do not look at
    np.testing.assert_array_equal(plain.coords, make(Uniform()).coords)


# ---- states --------------------------------------------------------------------------------------


def test_a_state_in_the_middle_of_a_phase_is_taken_up():
    sampler, other = make(), make(seed=1)
    for _ in range(8):
        sampler.block()
        sampler.record(np.array([2.0]))
    state = sampler.state_dict()
    sampler.record(np.array([9.0]))
    assert state["position"] == 2 and state["n_phases"] == 1 and state["grads"][2] != 9.0  # a copy
    other.load_state_dict(state)
    assert (other.position, other.n_phases) == (2, 1)
    for name in ("coords", "probs", "grads", "stream"):
        np.testing.assert_array_equal(getattr(other, name), state[name])
    for name, array in other.state._asdict().items():
        np.testing.assert_array_equal(array, state["distribution"][name])


def test_counts_reach_to_their_ends():
    sampler = make()
    state = sampler.state_dict()
    for name, value in (("n_phases", 0), ("n_phases", 2**62), ("n_phases", np.int64(3)),
                        ("position", 0), ("position", 5)):  # fmt: skip
        sampler.load_state_dict({**state, name: value})
        assert getattr(sampler, name) == value
    assert LARGEST == 2**62
    for name, value in (("n_phases", 2**62 + 1), ("n_phases", -1), ("n_phases", 1.0),
                        ("position", 6), ("position", -1), ("position", "0")):  # fmt: skip
        with pytest.raises(ValueError, match=f"{name} is"):
            sampler.load_state_dict({**state, name: value})


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def test_one_entry_outside_is_enough_and_the_ends_are_inside():
    sampler = make()
    state = sampler.state_dict()
    for name, place, value in (("coords", 0, 0), ("coords", 5, P - 1), ("probs", 3, 1.0),
                               ("probs", 0, 1e-300), ("grads", 2, -1e300)):  # fmt: skip
        sampler.load_state_dict({**state, name: changed(state[name], place, value)})
        assert getattr(sampler, name)[place] == value
    for name, place, value, message in (
        ("coords", 5, P, "outside of the 12"), ("coords", 0, -1, "outside of the 12"),
        ("probs", 0, 0.0, "not probabilities"), ("probs", 5, 1.0 + 1e-12, "not probabilities"),
        ("probs", 1, np.nan, "not probabilities"), ("grads", 5, np.inf, "not finite"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            sampler.load_state_dict({**state, name: changed(state[name], place, value)})
    one = np.zeros_like(state["stream"])
    one[-1] = 1
    sampler.load_state_dict({**state, "stream": one})
    with pytest.raises(ValueError, match="stream is zero"):
        sampler.load_state_dict({**state, "stream": 0 * one})


def test_a_law_that_is_none_is_refused():
    sampler = make()
    state = sampler.state_dict()
    name = next(name for name, array in state["distribution"].items() if array.dtype == np.float64)
    bad = {**state["distribution"], name: np.full_like(state["distribution"][name], np.nan)}
    with pytest.raises(ValueError):
        sampler.load_state_dict({**state, "distribution": bad})


def test_names_and_arrays_are_those_of_the_other():
    check_names("the state", {"a": 1}, {"a": 2})
    for found in ({"b": 1}, {"a": 1, "b": 1}, {}, [("a", 1)], None):
        with pytest.raises(
            ValueError, match=r"the state of the sampler must have the names \['a'\]"
        ):
            check_names("the state", found, {"a": 2})
    check_array("grads", np.zeros(3), np.ones(3))
    for found, message in (([0.0] * 3, "grads is list"), (np.zeros(4), r"shape \(4,\)"),
                           (np.zeros(3, np.float32), "float32"), (np.zeros((1, 3)), r"\(1, 3\)"),
                           (np.zeros(3, np.int64), "int64 of shape")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            check_array("grads", found, np.ones(3))
