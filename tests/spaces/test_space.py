"""A space is a way there and back: what is decoded encodes to the same point, and the reverse."""

import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scgd
from scgd import Choice, Float, Int, Space
from scgd.spaces import read_space


def paper():
    """Return the space of the page."""
    return Space(
        lr=Float(1e-4, 1, log=True),
        depth=Int(2, 12),
        leaves=Int(4, 256, log=True),
        booster=Choice("gbdt", "dart"),
        drop=Float(0, 0.5, when={"booster": "dart"}),
        w=Float(-1, 1, size=3),
    )


finite = st.floats(-1e3, 1e3, allow_subnormal=False)


@st.composite
def floats(draw):
    low = draw(finite)
    high = low + draw(st.floats(0.1, 1e6))
    kind = draw(st.sampled_from(["plain", "log", "step"]))
    if kind == "log":
        return Float(10 ** draw(st.integers(-8, 0)), 10 ** draw(st.integers(0, 8)), log=True)
    step = draw(st.floats(1e-2, 1)) * (high - low) if kind == "step" else None
    return Float(low, high, step=step, size=draw(st.sampled_from([None, 1, 3])))


@st.composite
def ints(draw):
    low = draw(st.integers(-1000, 1000))
    high = low + draw(st.integers(0, 1000))
    if draw(st.booleans()) and low > 0:
        return Int(low, high, log=True)
    return Int(low, high, step=draw(st.integers(1, 7)), size=draw(st.sampled_from([None, 2])))


choices = st.lists(st.one_of(st.text(max_size=3), st.integers(), st.booleans(), st.none()), min_size=1, max_size=5)  # fmt: skip


@st.composite
def spaces(draw):
    parts = {}
    for i in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["float", "int", "choice"]))
        if kind == "choice":
            values = draw(choices)
            parameter = Choice(*{(type(v), v): v for v in values}.values())
        else:
            parameter = draw(floats() if kind == "float" else ints())
        parents = [
            n for n, p in parts.items() if p.n_levels and p.size is None and not n.endswith("?")
        ]
        if parents and draw(st.booleans()):
            name = draw(st.sampled_from(parents))
            level = draw(st.integers(0, parts[name].n_levels - 1))
            value = parts[name].values(np.zeros(1), np.array([level]))[0]
            object.__setattr__(parameter, "when", {name: (value,)})
        parts[f"p{i}"] = parameter
    return Space(parts)


def equal(one, other):
    """Whether two dicts of parameters are one; types must be the same too."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert type(value) is type(other[name])
        if isinstance(value, float | np.ndarray):
            np.testing.assert_allclose(value, other[name], rtol=1e-9, atol=1e-9)
        else:
            assert value == other[name]


@given(space=spaces(), seed=st.integers(0, 100))
def test_there_and_back(space, seed):
    points = np.random.default_rng(seed).random((5, space.n_coords))
    for x in points:
        params = space.decode(x)
        again = space.encode(params)
        equal(space.decode(again), params)
        np.testing.assert_allclose(again, space.grid.canonical(x[None])[0], atol=1e-7)
        np.testing.assert_allclose(space.grid.canonical(again[None])[0], again, atol=1e-12)


@given(space=spaces(), seed=st.integers(0, 100))
def test_values_are_plain_and_inside(space, seed):
    x = np.random.default_rng(seed).choice([0.0, 1.0, 0.5, 0.123], space.n_coords)
    for name, value in space.decode(x).items():
        parameter = space.parameters[name]
        if parameter.size is not None:
            assert isinstance(value, np.ndarray) and value.shape == (parameter.size,)
            value = value[0].item()
        if isinstance(parameter, Choice):
            assert any(value is option or value == option for option in parameter.options)
            continue
        assert type(value) is (int if isinstance(parameter, Int) else float)
        assert parameter.low <= value <= parameter.high


@given(space=spaces(), seed=st.integers(0, 100))
def test_a_canonical_point_is_one_of_few(space, seed):
    """Snapping twice is snapping once, and what has no effect changes nothing."""
    rng = np.random.default_rng(seed)
    x = space.grid.canonical(rng.random((4, space.n_coords)))
    assert np.array_equal(space.grid.canonical(x), x)
    inert = ~space.grid.active(x)
    other = np.where(inert, rng.random(x.shape), x)
    assert np.array_equal(space.grid.canonical(other), x)
    for a, b in zip(x, other, strict=True):
        equal(space.decode(a), space.decode(b))


@pytest.mark.parametrize("low, high", [(1, 3), (2, 128), (1, 10**6), (7, 7)])
def test_logarithmic_whole_numbers_have_the_room_that_rounding_gives(low, high):
    grid = Space(n=Int(low, high, log=True)).grid
    u = np.linspace(0, 1, 20001)[:, None]
    a, b = math.log(low - 0.5), math.log(high + 0.5)
    expected = np.clip(np.rint(np.exp(a + u * (b - a))), low, high)
    assert np.array_equal(grid.levels(u) + low, expected)
    assert (
        grid.levels(np.array([[0.0]]))[0] == 0 and grid.levels(np.array([[1.0]]))[0] == high - low
    )


def test_lists_are_choices_and_three_numbers_have_an_order():
    space = Space(n=[3, 1, 2, 1], two=[2, 1], words=["b", "a", "c"])
    assert repr(space) == (
        "Space(n=Choice(1, 2, 3, ordered=True), two=Choice(2, 1), words=Choice('b', 'a', 'c'))"
    )


def test_steps_and_quantiles_find_their_way_back():
    from scipy.stats import norm

    space = Space(a=Float(1.0, 2.0, step=0.25), b=norm(2.0, 1.0))
    for params in ({"a": 1.25, "b": 2.0}, {"a": 2.0, "b": 3.0}):
        assert space.decode(space.encode(params)) == pytest.approx(params)
    for far, edge in ((-50.0, 0.0), (50.0, 1.0)):  # the cut thousandths
        assert space.encode({"a": 1.0, "b": far})[1] == edge


def test_points_beyond_the_cube_are_taken_to_its_edge():
    grid = Space(a=Float(0, 1), n=Int(0, 3)).grid
    np.testing.assert_allclose(
        grid.snapped(np.array([[1.7, 1.7], [-0.2, -0.2]])), [[1.0, 0.875], [0.0, 0.125]]
    )


def test_even_levels_have_equal_room():
    grid = Space(n=Int(3, 7), c=Choice("a", "b", "c"), f=Float(0, 1, step=0.25)).grid
    u = (np.arange(6000)[:, None] + 0.5) / 6000
    levels = grid.levels(np.repeat(u, 3, axis=1))
    for k, n in enumerate((5, 3, 5)):
        assert np.bincount(levels[:, k]).tolist() == [6000 // n] * n


def test_defaults_are_the_start_and_the_middle_where_there_are_none():
    space = Space(
        lr=Float(1e-4, 1, log=True, default=0.1), depth=Int(2, 12, default=3), n=Int(2, 12),
        kind=Choice("a", "b", default="b"), other=Choice("a", "b"), x=Float(0, 3),
        w=Float(-1, 1, size=2, default=[0.5, -0.5]), v=Float(-1, 1, size=2, default=0.25),
    )  # fmt: skip
    start = space.start
    assert list(start["w"]) == [0.5, -0.5] and list(start["v"]) == [0.25, 0.25]
    del start["w"], start["v"]
    assert start == {"lr": 0.1, "depth": 3, "n": 7, "kind": "b", "other": "a", "x": 1.5}


def test_conditions_hold_through_generations():
    space = Space(
        a=Choice("x", "y", "z"), b=Int(1, 3, when={"a": ("x", "y")}),
        c=Float(0, 1, when={"b": 2, "a": "x"}), d=Float(0, 1, when={"b": 3}, size=2),
    )  # fmt: skip
    assert space.decode(space.encode({"a": "z"})).keys() == {"a"}
    assert space.decode(space.encode({"a": "y", "b": 2})).keys() == {"a", "b"}
    assert space.decode(space.encode({"a": "x", "b": 2, "c": 0.25})) == {
        "a": "x",
        "b": 2,
        "c": 0.25,
    }
    assert space.decode(space.encode({"a": "y", "b": 3, "d": [0, 1]}))["d"].tolist() == [0, 1]
    with pytest.raises(ValueError, match="params lacks 'c'"):
        space.encode({"a": "x", "b": 2})
    x = space.encode({"a": "z"})
    assert np.array_equal(space.encode({"a": "z", "b": 3, "c": 0.1}), x)  # without effect


def test_equal_looking_values_of_a_choice_are_kept_apart():
    space = Space(c=Choice(1, 1.0, True, "1", None))
    for value in (1, 1.0, True, "1", None):
        found = space.decode(space.encode({"c": value}))["c"]
        assert found == value and type(found) is type(value)


def test_names_of_coordinates():
    assert paper().names == ["lr", "depth", "leaves", "booster", "drop", "w[0]", "w[1]", "w[2]"]


def test_a_space_says_what_it_is_and_travels():
    space = paper()
    assert repr(eval(repr(space), vars(scgd))) == repr(space)
    assert repr(pickle.loads(pickle.dumps(space))) == repr(space)
    odd = Space({"learning rate": Float(0, 1), "kind of": Choice("a", "b", default="b")})
    assert repr(eval(repr(odd), vars(scgd))) == repr(odd)


def test_optunas_distributions_are_taken_as_they_are():
    optuna = pytest.importorskip("optuna.distributions")
    space = Space(
        lr=optuna.FloatDistribution(1e-4, 1, log=True), n=optuna.IntDistribution(2, 20, step=3),
        m=optuna.IntDistribution(1, 64, log=True), c=optuna.CategoricalDistribution(["a", None]),
        q=optuna.FloatDistribution(0, 1, step=0.25),
    )  # fmt: skip
    assert repr(space) == (
        "Space(lr=Float(0.0001, 1.0, log=True), n=Int(2, 20, step=3), m=Int(1, 64, log=True), "
        "c=Choice('a', None), q=Float(0.0, 1.0, step=0.25))"
    )
    found = space.decode(np.full(5, 0.999))
    assert found == {"lr": pytest.approx(0.99, rel=0.01), "n": 20, "m": 64, "c": None, "q": 1.0}


TOML = """
lr = {type = "float", low = 1e-4, high = 1, log = true}
depth = {type = "int", low = 2, high = 12, default = 5}
[booster]
type = "choice"
values = ["gbdt", "dart"]
[drop]
type = "float"
low = 0
high = 0.5
when = {booster = "dart"}
[w]
type = "float"
low = -1
high = 1
size = 3
"""


def test_a_file_describes_a_space(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(TOML)
    assert repr(read_space(path)) == (
        "Space(lr=Float(0.0001, 1.0, log=True), depth=Int(2, 12, default=5), "
        "booster=Choice('gbdt', 'dart'), drop=Float(0.0, 0.5, when={'booster': 'dart'}), "
        "w=Float(-1.0, 1.0, size=3))"
    )


def file_of(text):
    def make(folder):
        (folder / "space.toml").write_text(text)
        return read_space(folder / "space.toml")

    return make


BAD = [
    (lambda _: Space(), ValueError, "a space needs parameters"),
    (lambda _: Space([Float(0, 1)]), TypeError, "a Space is made of named parameters, got list"),
    (lambda _: Space(a=3), TypeError, "parameter 'a' must be a Float, an Int, a Choice"),
    (lambda _: Space(a=Float), TypeError, "parameter 'a' must be a Float"),
    (lambda _: Float(1, 0), ValueError, "low must not be above high, got Float(1.0, 0.0)"),
    (lambda _: Float(0, 1, log=True), ValueError, "log=True needs low above zero, got Float(0.0, 1.0, log=True)"),
    (lambda _: Float(0, math.nan), ValueError, "high must be a finite number, got nan"),
    (lambda _: Float("0", 1), TypeError, "low must be a finite number, got '0'"),
    (lambda _: Float(-1e308, 1e308), ValueError, "is too wide"),
    (lambda _: Float(1, 2, log=True, step=0.1), ValueError, "step must be positive, and excludes log"),
    (lambda _: Float(0, 1, step=0), ValueError, "step must be positive"),
    (lambda _: Float(0, 1, size=0), ValueError, "size must be a whole number >= 1, got 0"),
    (lambda _: Int(0.5, 3), ValueError, "low must be a whole number below 2**53, got 0.5"),
    (lambda _: Int(0, 3, log=True), ValueError, "log=True needs low above zero, got Int(0, 3, log=True)"),
    (lambda _: Int(1, 3, log=True, step=2), ValueError, "step and log exclude each other, got step=2"),
    (lambda _: Int(1, 3, step=0), ValueError, "step must be a whole number >= 1, got 0"),
    (lambda _: Choice(), ValueError, "a Choice needs values"),
    (lambda _: Choice(["a", "b"]), ValueError, "give the values one by one: Choice(*['a', 'b'])"),
    (lambda _: Choice("a", "a"), ValueError, "must differ, got 'a' twice"),
    (lambda _: Space(a=Float(0, 1, default=2)), ValueError, "the default of parameter 'a': 2 lies outside [0.0, 1.0]"),
    (lambda _: Space(a=Int(0, 9, step=2, default=3)), ValueError, "the default of parameter 'a': 3 is none of 0, 2, ..., 8"),
    (lambda _: Space(a=Choice(1, 2, default="1")), ValueError, "the default of parameter 'a': '1' is none of (1, 2)"),
    (lambda _: Space(a=Float(0, 1, size=3, default=[0, 1])), ValueError, "the default of parameter 'a' needs 3 numbers"),
    (lambda _: Space(a=Float(0, 1), b=Int(0, 1, when={"a": 0})), ValueError, "a condition needs a Choice or an Int"),
    (lambda _: Space(a=Int(0, 1, when={"b": 1}), b=Int(0, 1)), ValueError, "when of 'a' names 'b', which is no parameter before it"),
    (lambda _: Space(a=Int(0, 1), b=Int(0, 1, when={"a": 2})), ValueError, "when of 'b': 'a' is never so: 2 is none of"),
    (lambda _: Space(a=Int(0, 1), b=Int(0, 1, when="a")), ValueError, "when of 'b' must be a dict"),
    (lambda _: paper().encode({"lr": 0.1}), ValueError, "params lacks 'depth'"),
    (lambda _: paper().encode({"rate": 0.1}), ValueError, "params has 'rate', which is none of ['lr'"),
    (lambda _: paper().encode([0.1]), TypeError, "params must be a dict of values, got list"),
    (lambda _: paper().decode([0.1]), ValueError, "a point has 8 coordinates, got shape (1,)"),
    (lambda folder: read_space(folder / "none.toml"), ValueError, "cannot read the space in"),
    (file_of("= 3"), ValueError, "is no TOML file"),
    (file_of("a = 3"), ValueError, "a must be a table with type = 'float', 'int', 'choice'"),
    (file_of("a = {type = 'float', low = 1}"), ValueError, "a lacks high"),
    (file_of("a = {type = 'float', low = 1, high = 2, lg = true}"), ValueError, "a has 'lg', which is none of"),
    (file_of("a = {type = 'float', low = 3, high = 2}"), ValueError, "a: low must not be above high"),
    (file_of("a = {type = 'choice', values = 3}"), ValueError, "a: values must be a list, got 3"),
    (file_of(""), ValueError, "a space needs parameters"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_wrong_spaces_fail_clearly(case, tmp_path):
    call, error, message = BAD[case]
    with pytest.raises(error, match=re.escape(message)):
        call(tmp_path)
