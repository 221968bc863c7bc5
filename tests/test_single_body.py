"""The loop over single coordinates against ask and tell: bounds, samples, losses, ties."""

import numpy as np
import pytest

import scgd
from asking import Plain, accepted, run_with, same_run, same_state, steps_of, told
from registry import P
from scgd.descent.single import SingleLoop
from test_agreement import (
    VARIANTS,
    normal,
    optimizer,
    python_pitted,
    python_quadratic,
    python_rows,
    sampled,
)


def in_two(opt, fun, args=(), cls=SingleLoop):
    """Run a body for odd numbers of evaluations and then by phases."""
    for room in (2, 14, 1, 38):
        run_with(cls, opt, fun, args, room=room)
    while not opt.done:
        run_with(cls, opt, fun, args, by_phase=True)
    return opt.result()


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_is_ask_and_tell(variant):
    keywords = {**VARIANTS[variant], "step": "rms"}
    one, two = (optimizer(keywords, max_evals=120) for _ in range(2))
    by_asking = told(one, python_quadratic)
    same_run(in_two(two, python_quadratic), by_asking)
    same_state(two, one)


@pytest.mark.parametrize("variant", ["plain", "forward", "forward-bounded", "central-bounded"])
def test_lost_values_cost_one_each(variant):
    keywords = {**VARIANTS[variant], "step": "rms"}
    one, two = (optimizer(keywords, failures="skip", max_evals=240) for _ in range(2))
    by_asking = told(one, python_pitted)
    same_run(in_two(two, python_pitted), by_asking)
    same_state(two, one)
    assert two.run.ledger.n_failed > 10


@pytest.mark.parametrize("estimator", ["forward", "central"])
@pytest.mark.parametrize("seed", range(3))
def test_values_are_refused_where_they_were_seen(estimator, seed):
    said = []
    for go in (accepted, lambda opt, fun: run_with(SingleLoop, opt, fun)):
        opt = optimizer({"estimator": estimator, "scale": 1.0, "step": "rms"}, seed=seed)
        told(opt, python_quadratic, until=10 * seed)  # evaluations are counted from the first
        with pytest.raises(FloatingPointError) as caught:
            go(opt, python_pitted)
        said.append((str(caught.value), steps_of(opt).x.tolist()))
    assert said[0] == said[1]


@pytest.mark.parametrize("bounds", [None, [(-0.5, 0.7)] * P], ids=["free", "bounded"])
def test_samples_and_arguments_reach_it(bounds):
    keywords = {"step": "rms", "bounds": bounds}
    one, two = (optimizer(keywords, sample=normal, max_evals=80) for _ in range(2))
    same_run(in_two(two, sampled), told(one, sampled))
    options = {"sample": scgd.Rows(50, 3), "max_evals": 80}
    one, two = (optimizer(keywords, **options) for _ in range(2))
    same_run(in_two(two, python_rows, (2.0,)), told(one, python_rows, (2.0,)))
    same_state(two, one)


@pytest.mark.parametrize("cls", [SingleLoop, Plain])
@pytest.mark.parametrize("estimator", ["forward", "central"])
def test_of_two_equal_values_the_first_asked_is_kept(cls, estimator):
    def fun(x):
        return 3.0 if np.count_nonzero(x != 0.25) > 1 else 2.0

    one, two = (optimizer({"estimator": estimator, "step": "rms"}, max_evals=40) for _ in range(2))
    told(one, fun)
    run_with(cls, two, fun)
    same_state(two, one)
    assert two.run.ledger.best.value == 2.0


@pytest.mark.parametrize("cls", [SingleLoop, Plain])
def test_phases_go_on_over_the_ends_of_chunks(cls):
    """Rates are made for 512 steps at a time, of which a phase of 7 is no part."""
    keywords = {"policy": scgd.Musketeer(length=7), "step": "rms"}
    one, two = (optimizer(keywords, max_evals=1100) for _ in range(2))
    by_asking = told(one, python_quadratic)
    run_with(cls, two, python_quadratic)
    same_run(two.result(), by_asking)
    same_state(two, one)
