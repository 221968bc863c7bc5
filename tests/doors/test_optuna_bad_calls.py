"""Every argument of the sampler against every odd value: it works, or is named."""

import pytest

optuna = pytest.importorskip("optuna")

import scgd  # noqa: E402
from bad_calling import Doors  # noqa: E402
from scgd.optuna import SCGDSampler  # noqa: E402


def study(**keywords):
    """Run two trials."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    made = optuna.create_study(sampler=SCGDSampler(**{"n_trials": 2, **keywords}))
    made.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)


DOORS = {
    "SCGDSampler": (study, SCGDSampler, {
        "n_trials": "count", "method": "none", "search_space": "none", "seed": "none+natural",
    }),
    "Space": (lambda parameters: scgd.Space(parameters), scgd.Space.__init__, {
        "parameters": "choice",
    }),
}  # fmt: skip
OURS = Doors(DOORS)


@pytest.mark.parametrize("door", DOORS)
def test_every_argument_has_a_row(door):
    OURS.check_rows(door)


@pytest.mark.parametrize("door", DOORS)
def test_every_odd_value_works_or_is_named(door):
    OURS.check(door)


@pytest.mark.parametrize("value", [3, "x", None, [1], {"low": 0}])
def test_a_space_names_the_parameter_that_is_none(value):
    with pytest.raises((TypeError, ValueError), match="rate"):
        scgd.Space(rate=value)
