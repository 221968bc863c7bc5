"""The story under noise told by hand, and what plans stand on."""

import warnings

import numpy as np
import pytest

import scgd
from scgd.plans.base import Plan
from scgd.plans.ground import Ground
from scgd.plans.guard import Patience
from scgd.plans.joint import first_leg, joint_directions, leg, own_radii
from scgd.plans.noisy import archive_of, noisy, rounds, screened, slid
from scgd.plans.ran import what_ran
from scgd.plans.steps import steps
from scgd.problem import Problem
from scgd.searches import (
    Footing,
    OwnRadii,
    RandomSearch,
    Screened,
    Slid,
    Standing,
    Verdict,
)
from scgd.searches.check import Progress
from scgd.searches.reach import Signal
from telling import BETTER, EQUAL, WORSE, ground, names, told

# ---- noise that nobody controls ------------------------------------------------------------------

SEEN = Footing(0.5, 0.1, 3.0, 5.0, True, False, 4.0)
UNSEEN = Footing(0.5, 0.1, 3.0, 0.0, False, False, 4.0)


@pytest.mark.parametrize(
    "p, total, kept",
    [(100, 4001, 100), (101, 4001, 0), (101, 4000, 101)],
)  # fmt: skip
def test_a_model_is_fitted_to_few_coordinates_or_with_a_small_budget(p, total, kept):
    where = ground(p, total)
    assert next(noisy(where)).name == "ladder"
    assert where.arrays["points"].shape == (1000 if kept else 0, kept)


@pytest.mark.parametrize(
    "p, total, footing, second",
    [(4, 1000, SEEN, "walk"), (101, 4010, SEEN, "screen"), (101, 4010, UNSEEN, "reach"),
     (101, 4010, Footing(0.5, 0.1, 3.0, 5.0, True, True, 4.0), "reach"), (300, 1510, SEEN, "screen"),
     (300, 1499, SEEN, "walk"), (300, 1500, SEEN, "screen"), (4, 5000, SEEN, "walk")],
)  # fmt: skip
def test_what_follows_the_ladder(p, total, footing, second):
    where = ground(p, total)
    assert names(told(noisy(where), where, (footing, 10)))[1] == second


FLAT = Footing(8.0, 20.0, 3.0, 1.0, True, False, 8.0, 0.0, True)


@pytest.mark.parametrize(
    "p, total, second",
    [(18, 200, "population"), (4, 4000, "population"), (4, 4001, "walk"), (200, 4000, "population"),
     (201, 4000, "screen"), (4, 81, "population"), (4, 80, "walk")],
)  # fmt: skip
def test_a_population_follows_where_nothing_shows(p, total, second):
    """Four coordinates: eight generations of 8, four values at two points, 9 spent before."""
    where = ground(p, total)
    assert names(told(noisy(where), where, (FLAT, 9)))[1] == second


def test_the_end_of_a_population_is_compared_with_the_start_by_what_is_left():
    where = ground(4, 300)
    telling = noisy(where)
    next(telling)
    where.spent = 30
    crowd = telling.send(FLAT)
    assert crowd.budget == 270 - 2 * 4 and crowd.radius == 0.5
    assert where.sentence == (
        "Noise that nobody controls, 20; no slope shows at any distance: a population, 0.5 wide "
        "at first."
    )
    where.spent = 285
    judge = telling.send(None)
    assert judge.name == "judge" and judge.n_samples == 7
    where.spent = 299
    rest = telling.send(BETTER)
    assert rest.name == "rest"
    where.total = 2000
    walk = telling.send(None)
    assert walk.name == "walk" and walk.radius == 0.5


def test_a_large_budget_compares_ten_values():
    where = ground(4, 3000)
    telling = noisy(where)
    next(telling)
    crowd = telling.send(FLAT)
    assert crowd.budget == 3000 - 2 * 30
    where.spent = 1000  # the population was over before
    assert telling.send(None).n_samples == 10


def test_a_screen_looks_four_radii_away_and_pays_by_the_pair():
    """Scarce: fewer than 8 evaluations per coordinate; a 12th of the room in pairs, else a 40th."""
    moving = np.ones(400)
    for total, n_pairs in ((3199, 266), (3200, 80)):
        where = ground(400, total)
        search = next(screened(where, SEEN, moving))
        assert search.most == n_pairs and search.radius == 2.0 and search.deviation == 0.1
    near = Footing(0.5, 0.1, 3.0, 5.0, True, False, 1.5)
    assert next(screened(ground(400, 3199), near, moving)).radius == 1.5


@pytest.mark.parametrize(
    "total, found, moved",
    [(3199, Screened(100, True), 100), (3199, Screened(101, True), 0), (3199, Screened(5, False), 0),
     (3200, Screened(5, True), 0)],
)  # fmt: skip
def test_few_coordinates_move_where_few_matter_and_the_budget_is_scarce(total, found, moved):
    where, moving = ground(400, total), np.full(400, 7.0)
    assert told(screened(where, SEEN, moving), where, (found, 50))[-1] == moved
    assert np.all(moving == 7.0) == (moved == 0)


def test_rounds_of_walk_and_check():
    """n = 1,000, p = 10: ten rounds; each check costs 8 values at two points."""
    where = ground(10, 1000)
    walk = told(noisy(where), where, (SEEN, 10))[1]
    where.spent = 100
    telling = rounds(where, walk, 10, 1000, 900, Patience(where))
    assert next(telling) is walk and walk.until == 2 * 32  # (800 - 2 * 8 * 10) / 10 / 2
    assert (walk.share, walk.per_pair) == (0.0, 2 / 800) and walk.falls == np.log(1000 / 400)
    where.spent += 64
    check = telling.send(None)
    assert check.name == "check" and check.n_values == 8 and check.walk is walk
    where.spent += 16
    assert telling.send(Progress(2.0, 0.1)) is walk
    assert walk.until == 2 * 32 and walk.share == 0.1
    where.spent = 899  # no pair of values is left
    with pytest.raises(StopIteration):
        telling.send(None)


@pytest.mark.parametrize(
    "p, n, n_rounds, n_values, falls",
    [(10, 60, 4, 2, 0.0), (10, 29, 2, 2, 0.0), (10, 120, 6, 2, 0.0), (10, 140, 7, 2, 0.0),
     (1, 40, 2, 2, 0.0), (1, 50, 3, 2, np.log(1.25)), (4, 1600, 10, 8, np.log(10.0))],
)  # fmt: skip
def test_how_many_rounds_there_are(p, n, n_rounds, n_values, falls):
    where = ground(p, 10**5)
    walk = told(noisy(where), where, (SEEN, 0))[1]
    end = 10**4  # more than is planned for: rounds are then only counted
    telling, asked = rounds(where, walk, p, n, end, Patience(where)), []
    search = next(telling)
    assert walk.falls == pytest.approx(falls)
    try:
        while True:
            asked.append(search.name)
            assert search is walk or search.n_values == n_values
            search = telling.send(None if search is walk else Progress(1.0, 1.0))
    except StopIteration:
        pass
    assert asked == ["walk", "check"] * min(max(n_rounds, 2), 10)


def test_large_budgets_open_with_rounds_and_go_on_with_joint_directions():
    """Of 20,000 evaluations 15 % are for the rounds, at least 1,500."""
    for total, opening in ((5000, 1500), (20_000, 3000)):
        where = ground(4, total)
        telling = noisy(where)
        walk = told(telling, where, (SEEN, 100))[1]
        assert walk.per_pair == 2 / (opening - 100)
        where.spent = opening
        assert telling.send(None).name == "radii"


def test_small_budgets_end_with_a_comparison_by_ranks():
    where = ground(4, 1000)
    telling = noisy(where)
    walk = told(telling, where, (SEEN, 100))[1]
    assert walk.per_pair == 2 / (1000 - 2 * 10 - 100)
    where.spent = 980
    where.point.put(np.ones(4))
    judge = telling.send(None)
    assert judge.name == "judge" and judge.n_samples == 10
    where.spent = 1000
    rest = telling.send(Verdict(-9.0, 1.0, median=1.0, lower=0.2))  # most pairs say worse
    assert rest.name == "rest"
    np.testing.assert_array_equal(where.point.x, 0.0)


def test_many_coordinates_go_to_joint_directions_at_the_radius_that_is_found():
    where = ground(101, 4010)
    asked = told(noisy(where, "So. "), where, (UNSEEN, 10), (Signal(0.25, "slope"), 100))
    assert names(asked) == ["ladder", "reach", "radii"] and asked[1].budget == 4000
    np.testing.assert_array_equal(where.arrays["scale"], 0.25)
    assert where.sentence == "So. Noise that nobody controls; radius 0.25."


# ---- joint directions ----------------------------------------------------------------------------


def test_a_leg_spends_its_share_less_three_comparisons():
    """Room 4,000, 10 pairs a comparison: share .3 of 4,000 - 60 is 1,182, in steps of two."""
    where = ground(4, 4000)
    walk = next(leg(where, 0.3, np.full(4, 0.5), 2.0, 3.0, 7.0, Patience(where)))
    assert walk.name == "steps" and walk.until == 1182 and walk.base == 7.0
    np.testing.assert_array_equal(walk.scale, 0.5)
    assert walk.recipe.radius == scgd.Constant(3.0)
    poor = ground(4, 50)
    poor.spent = 45
    assert next(leg(poor, 1.0, np.ones(4), 2.0, 1.0, 0.0, Patience(poor))).until == 0


def test_a_patient_leg_is_compared_with_itself_along_the_way():
    where = ground(4, 4000, patience=400)
    telling = leg(where, 0.5, np.ones(4), 2.0, 1.0, 7.0, Patience(where))
    walk = next(telling)
    assert walk.until == 1970 // 4 and walk.base == 7.0
    where.spent = 492
    judge = telling.send(None)
    assert judge.name == "judge" and judge.n_samples == 10
    np.testing.assert_array_equal(judge.reference, 0.0)
    where.point.put(np.ones(4))
    where.spent = 512
    assert telling.send(BETTER) is walk
    np.testing.assert_array_equal(where.kept["x"], 1.0)
    assert walk.until == (1970 - 512) // 3 and np.isnan(walk.base)
    where.spent = 950
    where.point.put(np.full(4, 2.0))
    telling.send(None)
    where.spent = 970  # 458 evaluations since the gain: the user's patience is over
    with pytest.raises(StopIteration):
        telling.send(EQUAL)
    np.testing.assert_array_equal(where.kept["x"], 1.0)
    assert where.converged


def test_a_first_leg_that_got_worse_is_taken_back_and_tried_nearer_by():
    where, scale = ground(4, 4000), np.full(4, 1.0)
    telling = first_leg(where, scale, Patience(where))
    search = next(telling)
    assert search.name == "radii" and search.n_levels == 0
    assert (search.n_repeats, search.n_pairs) == (10, 4)
    walk = telling.send(OwnRadii(0, 3.0, True, 7.0))
    assert walk.recipe.radius == scgd.Constant(3.0) and walk.base == 7.0
    assert walk.until == 1182  # a share of .3
    where.point.put(np.ones(4))
    assert telling.send(None).n_samples == 10
    assert telling.send(Verdict(0.0, 1.0, against=2.1)).name == "radii"  # heavy tails
    np.testing.assert_array_equal(where.point.x, 0.0)
    np.testing.assert_allclose(scale, 10**-0.5)
    assert telling.send(OwnRadii(0, 3.0, False, 8.0)).recipe.radius == scgd.Constant(1.0)
    telling.send(None)
    with pytest.raises(StopIteration) as end:
        telling.send(Verdict(1.9, 1.0, against=1.9))
    assert end.value.value == (1.0, 8.0)
    scale = np.ones(4)
    telling = first_leg(where, scale, Patience(where))
    n, search = 0, next(telling)
    try:
        while True:
            n += search.name == "radii"
            search = telling.send(
                {"radii": OwnRadii(0, 1.0, True, 7.0), "judge": WORSE}.get(search.name)
            )
    except StopIteration:
        assert n == 5
    np.testing.assert_allclose(scale, 0.01)


@pytest.mark.parametrize(
    "p, total, levels, unit",
    [(4, 467, 7, 6.0), (4, 466, 3, 6.0), (4, 200, 3, 6.0), (4, 199, 0, 1.5)],
)
def test_each_coordinate_gets_levels_where_they_cost_an_eighth(p, total, levels, unit):
    search = next(own_radii(ground(p, total), np.full(p, 2.0), 3.0))
    assert search.n_levels == levels
    np.testing.assert_array_equal(search.unit, unit)


def test_radii_of_coordinates_are_units_of_the_second_leg():
    where, scale = ground(4, 10**4), np.full(4, 2.0)
    telling = own_radii(where, scale, 3.0)
    search = next(telling)
    search.resolved = np.array([True, True, True, True])
    search.resolved[3] = False
    search.radii[...] = [1.0, 2.0, 4.0, 9.0]
    with pytest.raises(StopIteration) as end:
        telling.send(OwnRadii(4, 0.25, True, 7.0))
    wide = 0.25 * 2.0
    assert end.value.value == (scgd.Constant(wide), 7.0)
    np.testing.assert_allclose(scale, [0.5, 1.0, 2.0, 3.0 / wide * 2.0])
    np.testing.assert_allclose(where.arrays["importance"], [1.0, 0.25, 0.0625, 0.0])
    few = ground(4, 100)
    for seen, growth in ((True, 3.0 * 0.25 * 5.0), (False, 3.0)):
        telling = own_radii(few, np.full(4, 2.0), 3.0)
        next(telling)
        with pytest.raises(StopIteration) as end:
            telling.send(OwnRadii(0, 5.0, seen, 7.0))
        assert end.value.value == (scgd.Constant(growth), 7.0)


def test_joint_moves_become_narrower_where_f_is_no_quadratic():
    where = ground(4, 10**4)
    telling = own_radii(where, np.full(4, 2.0), 3.0)
    search = next(telling)
    assert search.n_steps == 4940  # pairs of all that is left, less two comparisons
    assert next(first_leg(where, np.ones(4), Patience(where))).n_steps == int(0.3 * 4940)
    with pytest.raises(StopIteration) as end:
        telling.send(OwnRadii(0, 1.0, True, 7.0, steep=True))
    assert end.value.value == (scgd.Linear(3.0, end=0.1), 7.0)
    few = ground(4, 199)  # too few evaluations for a radius of each
    assert next(first_leg(few, np.ones(4), Patience(few))).n_steps == 0
    telling = own_radii(few, np.full(4, 2.0), 3.0)
    assert next(telling).n_steps == 0
    with pytest.raises(StopIteration) as end:
        telling.send(OwnRadii(0, 5.0, False, 7.0, steep=True))
    assert end.value.value == (scgd.Constant(3.0), 7.0)
    telling = joint_directions(where, 1.0, Patience(where))
    answers = {
        "radii": OwnRadii(0, 2.0, True, 7.0, steep=True), "steps": None, "judge": EQUAL
    }  # fmt: skip
    search, radii = next(telling), []
    while len(radii) < 2:
        if search.name == "steps":
            radii.append(search.recipe.radius)
        search = telling.send(answers[search.name])
    assert radii == [scgd.Constant(2.0), scgd.Linear(2.0, end=0.1)]


@pytest.mark.parametrize("deviation, radius", [(0.0501, 2.0), (0.0499, 0.25)])
def test_pairs_of_the_walk_are_as_narrow_as_noise_that_falls_with_f_allows(deviation, radius):
    """From .1 to less than half of it; near a minimum under other noise wide pairs tell more."""
    where = ground(4, 1000)
    telling = slid(where, Footing(2.0, 0.1, 3.0, 101.0, True, False, 4.0), "", archive_of(where, 4))
    assert next(telling).name == "slide"
    assert telling.send(Slid(True)).name == "ladder"
    with pytest.raises(StopIteration) as end:
        telling.send(Footing(0.25, deviation, 1.0, 99.0, True, False, 4.0))
    assert end.value.value == Footing(radius, deviation, 1.0, 99.0, True, False, 4.0)


# ---- the ground and the plan ---------------------------------------------------------------------


def test_the_mean_of_laws_and_its_error():
    where = ground(2)
    where.hold("laws", np.zeros((2, 2)))
    where.hold("n_laws", np.zeros(1))
    assert where.mean_law is None
    where.note_law(np.array([0.2, 0.8]))
    mean, error = where.mean_law
    np.testing.assert_allclose(mean, [0.2, 0.8])
    assert np.all(np.isnan(error))
    where.note_law(np.array([0.4, 0.6]))
    where.note_law(np.array([0.6, 0.4]))
    mean, error = where.mean_law
    np.testing.assert_allclose(mean, [0.4, 0.6])
    spread = np.std([0.2, 0.4, 0.6], ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(error, [spread, spread])


def test_the_ground_counts_and_sizes():
    where = ground(3, None)
    assert where.budget == where.room == 1000
    assert ground(6, None).budget == 1200
    where.spent = 300
    assert where.room == 700
    assert where.size(0.5) == "0.5"
    uneven = Ground(
        Problem.check(np.zeros(2), None, np.array([1.0, 3.0])), where.samples, where.seed, 10
    )
    assert uneven.size(0.5) == "0.5 times scale"
    assert ground(2, scale=4.0).size(0.5) == "2"


def test_streams_of_a_story_are_numbered_from_one():
    where = ground(2)
    assert [where.stream().spawn_key for _ in range(2)] == [(1,), (2,)]
    same = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0, spawn_key=(0,))))
    assert where.aside().random() == same.random() and where.stream().spawn_key == (3,)


def two_searches(where):
    found = yield RandomSearch(where.problem, where.point, where.rng())
    assert found is not None
    yield RandomSearch(where.problem, where.point, where.rng())


def test_a_plan_counts_over_its_searches():
    where = ground(2, 100)
    plan = Plan(two_searches, where)
    assert plan.n_steps == 0 and plan.members == {} and plan.sentence == "Evaluations: none."
    for n in range(1, 4):
        question = plan.pose()
        plan.take(question, np.full(len(question), float(n)))
        plan.settle()
    assert plan.n_evals == 3 and plan.members == {"random search": 3}
    assert plan.sentence == "Evaluations: random search 3."
    np.testing.assert_array_equal(plan.start, 0.0)
    where.arrays["importance"] = np.array([1.0, 3.0])
    np.testing.assert_allclose(plan.weights, [0.25, 0.75])
    where.arrays["importance"] = np.zeros(2)
    assert plan.weights is None


class Looks(RandomSearch):
    """A search of so many points that tells how far it looked and what it saw of its point."""

    def __init__(self, where, n, far, values):
        super().__init__(where.problem, where.point, where.rng())
        self.n, self.far, self.seen = n, far, np.array(values)

    def tell(self, question, values):
        super().tell(question, values)
        self.finished = self.n_evals >= self.n

    @property
    def standing(self):
        return Standing(self.point.x, self.seen)


def three_looks(where):
    yield Looks(where, 2, 5.0, [4.0, np.nan])
    yield Looks(where, 1, 3.0, [np.nan])
    yield Looks(where, 1, 1.0, [np.nan])


def test_a_plan_says_how_far_it_has_looked_where_a_story_wants_that():
    where = ground(2, 100)
    plan = Plan(three_looks, where)
    assert "Looked" not in plan.sentence
    where.looks, plan.far = True, 6.0
    assert "Looked up to 6 away from x0. Evaluations:" in plan.sentence


def test_a_plan_remembers_what_its_searches_saw():
    plan = Plan(three_looks, ground(2, 100))
    for value in (9.0, 8.0, 7.0):
        question = plan.pose()
        plan.take(question, np.array([value]))
    assert plan.farthest == 5.0  # not that of the last search
    np.testing.assert_array_equal(plan.standing.values, [4.0, np.nan])  # one number is something
    assert [entry["spent"] for entry in plan.log] == [2, 3] and plan.past == 3
    assert plan.journal == [(1, 9.0), (2, 8.0), (3, 7.0)]
    assert what_ran("mine", plan).steps is None
    assert str(what_ran("mine", plan)) == "mine: random search 3"


def test_what_ran_names_the_recipe_of_its_steps():
    recipe = scgd.RECIPES["uniform"]
    plan = Plan(steps(recipe), ground(2, 100))
    ran = what_ran("uniform", plan)
    assert ran.steps == recipe and ran.members == () and str(ran) == "uniform: nothing"


def test_joint_directions_go_on_as_long_as_there_is_budget():
    where = ground(4, 4000)
    telling = joint_directions(where, 0.5, Patience(where))
    answers = {"radii": OwnRadii(0, 2.0, True, 7.0), "steps": None, "judge": EQUAL}
    search, asked, bases = next(telling), [], []
    while len(asked) < 11:
        asked.append(search.name)
        if search.name == "steps":
            bases.append(search.base)
        search = telling.send(answers[search.name])
    once = ["steps", "judge", "judge"]
    assert asked == ["radii", "steps", "judge", "radii", *once, *once, "steps"]
    assert bases[:2] == [7.0, 7.0] and np.isnan(bases[2:]).all()
    where.converged = True
    telling.send(EQUAL)
    with pytest.raises(StopIteration):
        telling.send(EQUAL)


@pytest.mark.parametrize(
    "found, scale, warned", [("nothing", None, 1), ("nothing", 1.0, 0), ("bend", None, 0)]
)
def test_where_nothing_shows_the_user_is_asked_for_a_scale(found, scale, warned):
    where = ground(101, 4010, scale=scale)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        told(noisy(where), where, (UNSEEN, 10), (Signal(0.25, found), 100))
    assert len(seen) == warned


def test_inputs_without_an_effect_are_told():
    where = ground(400, 3000)
    asked = told(noisy(where), where, (SEEN, 20), (Screened(7, True), 200))
    assert names(asked) == ["ladder", "screen", "walk"]
    assert where.sentence.endswith("radius 0.5. 7 of 400 inputs show an effect; others stay.")


class Knows(Looks):
    """A search that knows what matters."""

    @property
    def relevance(self):
        return np.array([0.25, 0.75]), np.array([0.1, 0.1])


def remembering(where):
    held = where.hold("held", np.zeros(2))
    yield Knows(where, 1, 1.0, [4.0])
    held += 1.0
    yield Looks(where, 9, 1.0, [np.nan])


def test_a_plan_is_taken_up_with_what_it_held():
    plan = Plan(remembering, ground(2, 100))
    question = plan.pose()
    plan.take(question, np.array([9.0]))
    plan.ground.arrays["held"][...] = [5.0, 6.0]
    state = plan.state_dict()
    other = Plan(remembering, ground(2, 100))
    other.load_state_dict(state)
    np.testing.assert_array_equal(other.ground.arrays["held"], [5.0, 6.0])
    np.testing.assert_array_equal(other.relevance[0], [0.25, 0.75])
    assert other.n_evals == 1 and other.past == 1 and other.members == plan.members
    for name, value in (("known", np.zeros((2, 3))), ("x", np.zeros(3)), ("x", np.full(2, np.nan)),
                        ("arrays", {}), ("live", {"leg": {}})):  # fmt: skip
        with pytest.raises(ValueError):
            Plan(remembering, ground(2, 100)).load_state_dict({**state, name: value})
