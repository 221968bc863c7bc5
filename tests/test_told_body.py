"""Stories told by a body are those told by questions: the same points, values and books."""

import numpy as np
import pytest

import scgd
from asking import answer, same_run, same_state, told
from scgd.explore import ToldBody, choose
from scgd.run.ledger import Ledger
from scgd.searches import Stop

P = 30
WEIGHTS = np.where(np.arange(P) % 3 == 0, np.logspace(-1, 2, P), 0.0)
CENTRE = np.random.default_rng(0).standard_normal(P)


def sparse(x):
    return float(WEIGHTS @ (x - CENTRE) ** 2)


def rugged(x):
    return float(WEIGHTS @ np.abs(x - CENTRE)) + sparse(x)


def rotated(x):
    y = np.cumsum(x - CENTRE)
    return float(y @ y)


def pitted(x):
    return np.nan if x[3] > 0.8 else float("inf") if x[6] < -1.5 else rugged(x)


FUNCTIONS = {"sparse": sparse, "rugged": rugged, "rotated": rotated}
GIVEN = {"free": {}, "bounds": {"bounds": [(-1.0, 2.0)] * P}, "scale": {"scale": 0.3}}


def optimizer(method="auto", **keywords):
    keywords = {"max_evals": 900, "seed": 1, **keywords}
    return scgd.Optimizer(np.zeros(P), method, **keywords)


def driven(fun, method="auto", **keywords):
    """Minimise by bodies; return the result and the points at which fun was called."""
    seen = []

    def noted(x):
        assert not x.flags.writeable
        seen.append(x.copy())
        return fun(x)

    keywords = {"max_evals": 900, "seed": 1, **keywords}
    return scgd.minimize(noted, np.zeros(P), method=method, **keywords), np.array(seen)


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("method", ["auto", "race", "bfgs"])
def test_a_body_tells_what_questions_tell(method, name, given):
    one, points = optimizer(method, **GIVEN[given]), []
    by_asking = told(one, lambda x: points.append(x.copy()) or FUNCTIONS[name](x))
    result, seen = driven(FUNCTIONS[name], method, **GIVEN[given])
    same_run(result, by_asking)
    np.testing.assert_array_equal(seen, np.array(points))


@pytest.mark.parametrize("budget", [1, 2, 3, 10, 37, 101, 102, 103])
def test_a_budget_is_kept(budget):
    by_asking = told(optimizer(max_evals=budget), rugged)
    result, seen = driven(rugged, max_evals=budget)
    same_run(result, by_asking)
    assert len(seen) <= budget


def test_lost_values_are_counted_and_never_the_best():
    keywords = {"on_nonfinite": "skip"}
    by_asking = told(optimizer(**keywords), pitted)
    result, _ = driven(pitted, **keywords)
    same_run(result, by_asking)
    assert result.n_failed == by_asking.n_failed > 0 and np.isfinite(result.fun)


def test_minus_infinity_is_refused_in_the_words_of_the_other():
    def bottomless(x):
        return -np.inf if rugged(x) < 40.0 else rugged(x)

    said = []
    for go in (lambda: told(optimizer(), bottomless), lambda: driven(bottomless)):
        with pytest.raises(FloatingPointError) as caught:
            go()
        said.append(str(caught.value))
    assert said[0] == said[1] and "evaluation" in said[0]


def ready(fun):
    """Return an optimizer on the way, and the body of its search."""
    opt = optimizer()
    told(opt, rugged, until=30)
    body = choose(opt.run.plan.active, fun, (), opt.run.ledger)
    assert isinstance(body, ToldBody)
    while not body.ready(opt.run.room):
        answer(opt, rugged)
    return opt, body


def test_a_body_takes_over_from_questions_and_gives_back():
    opt, body = ready(rugged)
    opt.run.run_body(lambda room: body.run(41, Stop(), by_phase=False))
    by_asking = optimizer()
    told(by_asking, rugged, until=opt.run.nfev)
    same_run(opt.result(), by_asking.result())
    same_state(opt, by_asking)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_a_flag_stops_it_and_what_was_seen_is_kept(n):
    stop, calls = Stop(), []

    def flagged(x):
        calls.append(1)
        if len(calls) == n:
            stop.set()
        return rugged(x)

    opt, body = ready(flagged)
    before = opt.run.nfev
    opt.run.run_body(lambda room: body.run(room, stop, by_phase=False))
    assert len(calls) == opt.run.nfev - before == n


def test_an_error_of_the_function_leaves_the_story_where_it_was():
    calls = []

    def failing(x):
        calls.append(1)
        if len(calls) == 7:
            raise KeyError("gone")
        return rugged(x)

    opt, body = ready(failing)
    with pytest.raises(KeyError, match="gone"):
        opt.run.run_body(lambda room: body.run(room, Stop(), by_phase=False))
    body.fun = rugged
    opt.run.run_body(lambda room: body.run(30, Stop(), by_phase=False))
    same_run(told(opt, rugged), told(optimizer(), rugged))


def test_when_a_body_is_ready():
    opt, body = ready(rugged)
    assert body.ready(1) and not body.ready(0)
    assert body.ready(opt.run.room)
    body.story.n_asked = 1
    assert not body.ready(5)
    body.story.n_asked, body.search.finished = 0, True
    assert not body.ready(5)
    body.search.finished, body.story.finished = False, True
    assert not body.ready(5)
    body.story.finished, body.search.due = False, body.search.n_evals
    assert not body.ready(5)


@pytest.mark.parametrize("room", [1, 2, 5])
def test_a_room_is_spent_and_no_more(room):
    opt, body = ready(rugged)
    before = opt.run.nfev
    opt.run.run_body(lambda _: body.run(room, Stop(), by_phase=False))
    assert opt.run.nfev - before == room


def test_the_rest_of_a_batch_needs_room_for_the_rest():
    _, body = ready(rugged)
    body.story._take_batch(np.zeros((3, P)))
    assert body.ready(3) and not body.ready(2)
    body.story.n_asked = body.story.n_answered = 1
    assert body.ready(2) and not body.ready(1) and body.story.midway


def test_where_phases_are_reported_it_tells_one_answer():
    opt, body = ready(rugged)
    before = opt.run.n_reports
    opt.run.run_body(lambda room: body.run(room, Stop(), by_phase=True))
    assert opt.run.n_reports == before + 1


def test_no_body_where_the_ledger_or_samples_must_be_asked():
    begun = optimizer("race")
    for asked in begun.ask(1):
        begun.tell(asked.id, rugged(asked.x))
    search = begun.run.plan.active
    assert choose(search, rugged, (), Ledger(P, "worst", repeats=True)) is None
    assert choose(search, rugged, (), Ledger(P, "skip", repeats=True), sampled=True) is None
    assert choose(search, rugged, (), Ledger(P, "skip", repeats=True)) is not None


def test_values_of_any_kind_and_further_arguments():
    result = scgd.minimize(
        lambda x, a: np.float32(a * sparse(x)), np.zeros(P), args=(2.0,), max_evals=300, seed=0
    )
    again = scgd.minimize(
        lambda x: float(np.float32(2.0 * sparse(x))), np.zeros(P), max_evals=300, seed=0
    )
    np.testing.assert_array_equal(result.x, again.x)


def test_a_record_and_a_history_are_those_of_questions():
    keywords = {"max_evals": 700, "seed": 3}
    plain = scgd.minimize(rugged, np.zeros(P), **keywords)
    whole = scgd.minimize(rugged, np.zeros(P), record=True, **keywords)  # question by question
    same_run(plain, whole)
    for name in ("number", "member", "value"):
        np.testing.assert_array_equal(
            getattr(plain.evaluations, name), getattr(whole.evaluations, name)
        )
