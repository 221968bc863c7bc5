"""Several evaluations out at a time, told late, in any order, or never made."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scgd
from asking import Recorded, begin, same_state, steps_of, told
from registry import ESTIMATORS, EVERY_METHOD, POLICIES, P, quadratic, quadratic_gradient
from scgd.history import Status

BOUNDS = [(-0.4, 0.6)] * P


class Laboratory:
    """Ask and tell as a laboratory does, and check what must hold after every step."""

    def __init__(self, method, budget, bounds, seed):
        self.make = lambda: scgd.Optimizer(
            np.zeros(P), method, max_evals=budget, bounds=bounds, seed=seed, failures="skip"
        )
        self.opt, self.budget, self.bounds = self.make(), budget, bounds
        self.fun = Recorded(quadratic)
        self.out, self.ids = [], set()
        self.n_told = self.n_failed = 0

    def ask(self, n):
        """Ask for some; the numbers are new, and the budget pays for them."""
        if self.opt.done:
            return
        trials = self.opt.ask(n)
        run = self.opt.run
        assert len(trials) == n or (len(trials) < n and (run.room < 1 or run.strategy.finished))
        assert trials or self.out, "nothing is out and nothing is asked"
        for trial in trials:
            assert trial.id not in self.ids and 0 <= trial.id < self.budget
            self.ids.add(trial.id)
            self.out.append((trial, trial.x.copy()))

    def answer(self, place, failed):
        """Answer one of those that are out."""
        if not self.out:
            return
        trial, x = self.out.pop(place % len(self.out))
        np.testing.assert_array_equal(trial.x, x)
        if self.bounds:
            assert x.min() >= -0.4 and x.max() <= 0.6
        if failed == 1:
            self.opt.fail(trial.id)
        else:
            value = self.fun(x) if failed == 0 else np.nan
            self.opt.tell(trial.id, value)
        self.n_failed += failed > 0
        self.n_told += 1
        with pytest.raises(ValueError, match="has been answered"):
            self.opt.tell(trial.id, 1.0)

    def reload(self):
        """Go on in another process."""
        state = self.opt.state_dict()
        self.opt = self.make()
        self.opt.load_state_dict(state)
        np.testing.assert_equal(self.opt.state_dict(), state)

    def check(self):
        """Check the books."""
        run = self.opt.run
        assert run.nfev == self.n_told and run.ledger.n_failed == self.n_failed
        assert run.n_issued <= self.budget
        np.testing.assert_array_equal(run.strategy.point.buffer, run.strategy.point.x)
        assert np.all(np.isfinite(run.strategy.point.x))
        again = {trial.id: trial for trial in self.opt.out()}
        assert again.keys() == {trial.id for trial, _ in self.out}
        for trial, x in self.out:  # a question keeps the base it was asked at
            np.testing.assert_array_equal(again[trial.id].x, x)
        if any(np.isfinite(self.fun.values)):
            value, x = self.fun.best()
            assert run.ledger.best.value == value
        weights = run.strategy.weights
        if weights is not None:
            assert weights.sum() == pytest.approx(1.0) and weights.min() >= 0
        n_evals = self.opt.result().history["nfev"]
        assert np.all(np.diff(n_evals) >= 0) and (not len(n_evals) or n_evals[-1] <= run.nfev)

    def finish(self):
        """Answer everything to the end of the budget."""
        while not self.opt.done:
            if not self.out:
                self.ask(4)
            self.answer(0, 0)
        assert not self.out and self.opt.run.nfev == self.opt.run.n_issued
        result = self.opt.result()
        assert result.status in (
            Status.BUDGET,
            Status.TOO_SMALL,
            Status.FINISHED,
            Status.CONVERGED,
            Status.FAILED,
        )
        assert result.nfev == self.n_told and result.n_failed == self.n_failed


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(1, 5), st.just(0)),
        st.tuples(st.just("answer"), st.integers(0, 99), st.sampled_from([0, 0, 0, 0, 1, 2])),
        st.tuples(st.just("reload"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@settings(max_examples=8)
@pytest.mark.parametrize("method", EVERY_METHOD)
@given(actions=ACTIONS, bounded=st.booleans(), seed=st.integers(0, 5))
def test_whatever_order_the_books_are_right(method, actions, bounded, seed):
    lab = Laboratory(method, 90, BOUNDS if bounded else None, seed)
    for name, number, failed in actions:
        if name == "ask":
            lab.ask(number)
        elif name == "answer":
            lab.answer(number, failed)
        else:
            lab.reload()
        lab.check()
    lab.finish()
    lab.check()


@settings(max_examples=5)
@pytest.mark.parametrize("policy", [*POLICIES, "gauss-southwell", "full"])
@given(actions=ACTIONS, estimator=st.sampled_from(sorted(ESTIMATORS)), block=st.integers(1, 4))
def test_every_policy_has_several_questions_open(policy, actions, estimator, block):
    recipe = scgd.SCGD(policy=POLICIES.get(policy, policy), estimator=estimator, block_size=block)
    lab = Laboratory(recipe, 120, None, 0)
    for name, number, failed in actions:
        lab.ask(number) if name == "ask" else lab.answer(number, failed)
        lab.check()
    lab.finish()


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_the_order_within_a_question_does_not_matter(method):
    """One question at a time, told backwards or shuffled: the same bits."""
    rng = np.random.default_rng(0)
    one, two = (scgd.Optimizer(np.zeros(P), method, max_evals=300, seed=0) for _ in range(2))
    told(one, quadratic)
    while not two.done:
        trials = two.ask()
        rng.shuffle(trials)
        two.tell([trial.id for trial in trials], [quadratic(trial.x) for trial in trials])
    same_state(two, one)


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_a_piece_of_a_question_is_the_question(method):
    """Asking for one evaluation at a time gives the same run."""
    one, two = (scgd.Optimizer(np.zeros(P), method, max_evals=300, seed=0) for _ in range(2))
    told(one, quadratic)
    while not two.done:
        (trial,) = two.ask(1)
        two.tell(trial.id, quadratic(trial.x))
    same_state(two, one)


@pytest.mark.parametrize("block", [1, 4])
def test_steps_out_together_are_asked_at_one_point_and_all_counted(block):
    opt = scgd.Optimizer(
        np.zeros(P), scgd.SCGD(policy="uniform", estimator="forward", block_size=block), scale=1.0, max_evals=500,
        seed=0)  # fmt: skip
    engine = begin(opt, quadratic)
    cost, before = block + 1, opt.run.nfev
    trials = opt.ask(5 * cost)
    assert len(trials) == 5 * cost
    bases = [trial.x for trial in trials[::cost]]
    assert all(np.array_equal(base, np.zeros(P)) for base in bases)
    moved = 0
    for i in reversed(range(5)):
        x = engine.x.copy()
        for trial in trials[i * cost : (i + 1) * cost]:
            np.testing.assert_array_equal(engine.x, x)
            opt.tell(trial.id, quadratic(trial.x))
        moved += not np.array_equal(engine.x, x)
    assert moved == 5 and engine.t == 5 and opt.run.nfev == before + 5 * cost


def test_failed_evaluations_do_not_end_a_run_that_raises():
    """fail() is somebody's word that there is no value; it needs no on_nonfinite."""
    opt = scgd.Optimizer(np.zeros(P), "uniform", scale=1.0, max_evals=400, seed=0)
    n = 0
    while not opt.done:
        for trial in opt.ask():
            n += 1
            if n % 5 == 0:
                opt.fail(trial.id)
            else:
                opt.tell(trial.id, quadratic(trial.x))
    result = opt.result()
    assert result.n_failed == 80 and result.nfev == 400
    assert quadratic(result.x) < 0.5 * quadratic(np.zeros(P))
    assert "without a finite value: 80" in result.message


def test_partial_derivatives_are_asked_and_told():
    opt = scgd.Optimizer(
        np.zeros(P), scgd.SCGD(policy="uniform", learning_rate=0.9, block_size=3), first_order=True, max_evals=900,
        seed=0)  # fmt: skip
    while not opt.done:
        for trial in opt.ask():
            if trial.coords is None:
                opt.tell(trial.id, quadratic(trial.x))
            else:
                assert len(trial.coords) == 3
                opt.tell(trial.id, quadratic_gradient(trial.x, trial.coords))
    result = opt.result()
    assert quadratic(result.x) < 1e-3
    assert result.fun == pytest.approx(quadratic(result.x))


def test_partial_derivatives_of_the_wrong_length_are_refused_and_may_fail():
    opt = scgd.Optimizer(
        np.ones(P),
        scgd.SCGD(policy="uniform", learning_rate=0.9, block_size=3),
        first_order=True,
        seed=0,
    )
    (look,) = opt.ask()
    opt.tell(look.id, 1.0)
    (trial,) = opt.ask()
    with pytest.raises(TypeError, match="jac must return 3 partial derivatives"):
        opt.tell(trial.id, [1.0, 2.0])
    opt.fail(trial.id)
    np.testing.assert_array_equal(opt.x, np.ones(P))
    assert steps_of(opt).t == 1 and opt.run.ledger.n_failed == 1


def test_a_saved_run_goes_on_with_what_is_out(tmp_path):
    def make():
        return scgd.Optimizer(
            np.zeros(P), scgd.SCGD(policy="uniform", block_size=3), max_evals=300, seed=0
        )

    whole, half, other = make(), make(), make()
    told(whole, quadratic)
    told(half, quadratic, until=100)
    trials = half.ask()
    half.tell(trials[1].id, quadratic(trials[1].x))
    half.save(tmp_path / "run")
    assert other.resume(tmp_path / "run") and not make().resume(tmp_path / "nothing")
    out = other.out()
    assert [trial.id for trial in out] == [t.id for t in trials if t is not trials[1]]
    for trial in out:
        other.tell(trial.id, quadratic(trial.x))
    told(other, quadratic)
    same_state(other, whole)


def test_trials_share_the_sample_of_their_question():
    opt = scgd.Optimizer(np.zeros(P), "uniform", scale=1.0, seed=0, sample=scgd.Rows(1000, 4))
    trials = opt.ask(8)
    rows = [tuple(trial.arguments[0]) for trial in trials]
    assert rows[::2] == rows[1::2] and len(set(rows)) == 4
