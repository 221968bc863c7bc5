"""What the user's functions are given is theirs: nothing they write changes a run."""

import warnings

import numpy as np
import pytest

import scgd

P = 6


def quadratic(x):
    return float(np.sum(np.arange(1, len(x) + 1) * (x - 1.0) ** 2))


def partials(x, coords):
    return 2.0 * (coords + 1) * (x[coords] - 1.0)


def through_base(x):
    if x.base is not None:
        x.base[0] += 1.0


def through_flags(x):
    owner = x if x.base is None else x.base
    owner.flags.writeable = True
    owner[...] = 7.0


def through_torch(x):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that the array is read-only, and goes on
        torch.from_numpy(x).mul_(1.01)


WRITES = [through_base, through_flags, through_torch]
METHODS = ["musketeer", "spsa", "auto", "random", "uniform"]


def writing(write, fun):
    def call(x, *rest):
        value = fun(x, *rest)
        write(x)
        for array in rest:
            array[...] = 0
        return value

    return call


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("method", METHODS)
def test_a_function_that_writes_changes_nothing(write, method):
    def run(fun):
        return scgd.minimize(fun, np.zeros(P), method=method, max_evals=240, seed=3)

    whole, same = run(quadratic), run(writing(write, quadratic))
    assert np.array_equal(whole.x, same.x) and whole.nfev == same.nfev


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"workers": scgd.Workers(asynchronous=12)},
        {"method": scgd.SCGD(block_size=3)},
        {"bounds": [(-2, 0.5)]},
    ],
)
def test_nor_does_it_where_questions_are_posed_otherwise(keywords):
    def run(fun):
        return scgd.minimize(
            fun, np.zeros(P), max_evals=240, seed=3, **{"method": "musketeer", **keywords}
        )

    assert np.array_equal(run(quadratic).x, run(writing(through_base, quadratic)).x)


@pytest.mark.parametrize("method", ["auto", "musketeer"])
@pytest.mark.parametrize("workers", [1, map])
def test_nor_do_writes_to_x_or_coords_of_jac(method, workers):
    def run(jac):
        return scgd.minimize(
            quadratic, np.zeros(P), jac=jac, method=method, max_evals=200, seed=3, workers=workers
        )

    assert np.array_equal(run(partials).x, run(writing(through_base, partials)).x)


def test_coordinates_of_a_trial_are_its_own():
    def run(write):
        opt = scgd.Optimizer(np.zeros(P), "musketeer", first_order=True, max_evals=60, seed=1)
        while not opt.done:
            for trial in opt.ask():
                values = (
                    partials(trial.x, trial.coords)
                    if trial.coords is not None
                    else quadratic(trial.x)
                )
                if write and trial.coords is not None:
                    trial.coords[...] = 0
                    trial.x[...] = 9.0
                opt.tell(trial.id, values)
        return opt.x

    assert np.array_equal(run(False), run(True))


def test_in_many_dimensions_a_function_that_writes_is_refused():
    x0 = np.zeros(100_000)
    with pytest.raises(ValueError, match=r"has written into x; have it work on x\.copy\(\)"):
        scgd.minimize(
            writing(through_base, quadratic), x0, method="uniform", max_evals=200, scale=1.0
        )


@pytest.mark.parametrize(
    "returned, error, message",
    [
        (
            np.nan,
            FloatingPointError,
            "jac returned nan at evaluation .*mend jac, or pass failures",
        ),
        (np.inf, FloatingPointError, "jac returned -?inf"),
        (1j, TypeError, r"jac must return \d partial derivatives, .* type complex128"),
    ],
)
@pytest.mark.parametrize("method", ["auto", "musketeer"])
def test_what_is_wrong_with_jac_is_blamed_on_jac(method, returned, error, message):
    def jac(x, coords):
        return partials(x, coords) * returned

    with pytest.raises(error, match=message):
        scgd.minimize(quadratic, np.zeros(P), jac=jac, method=method, max_evals=100, seed=0)
