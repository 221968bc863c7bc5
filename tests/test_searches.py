"""Every search keeps the contract: it can be saved between any two questions, and counts right."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import scgd
from scgd.plans import Planned
from scgd.problem import Problem
from scgd.questions import Point
from scgd.recipes import RECIPES
from scgd.samples import Samples
from scgd.searches import SEARCHES, Archive, Footing, Race, Rest, Stepping, Walk

DOCS = Path(__file__).parents[1] / "docs"
P = 5


def quadratic(x):
    return float(np.arange(1, P + 1) @ (x - 0.5) ** 2)


def walked(problem, point, footing):
    """Return a walk with points enough for a model."""
    walk = Walk(problem, point, np.random.default_rng(0), footing, Archive.empty(P, 30))
    points = np.random.default_rng(1).uniform(-0.5, 0.5, (30, P))
    walk.archive.add(points, [quadratic(x) for x in points])
    return walk.begin(100, 0.0, 0.01, 1.0)


def made(name, seed=3):
    """Return a fresh search of this name, its parts found by the names of its arguments."""
    problem = Problem.check(np.zeros(P), None, 1.0)
    parts = {
        "problem": problem,
        "point": Point(problem.x0),
        "rng": np.random.default_rng(seed),
        "seed": np.random.SeedSequence(seed),
        "samples": Samples.check(None, 1, np.arange(2, dtype=np.uint64)),
        "recipe": RECIPES["musketeer"],
        "length": np.ones(P),
        "unit": np.full(P, 0.1),
        "support": np.arange(P),
        "active": np.arange(P),
        "bend": np.arange(1.0, P + 1),
        "reference": np.ones(P),
        "values": np.ones(2),
        "error": 1e-16,
        "budget": 400,
        "n_samples": 5,
        "n_values": 5,
        "n_levels": 3,
        "n_repeats": 4,
        "n_pairs": 2,
        "n_steps": 100,
        "radius": 0.5,
        "value": quadratic(problem.x0),
        "footing": Footing(0.5, 0.05, quadratic(problem.x0), 3.0, True, False, 0.0),
    }
    parts["inner"] = Race(problem, parts["point"], parts["seed"], 400)
    parts["walk"] = walked(problem, parts["point"], parts["footing"])
    search = SEARCHES[name]
    needed = [
        p.name
        for p in inspect.signature(search).parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    made = search(**{key: parts[key] for key in needed})
    if name == "walk":
        made.begin(15, 0.0, 0.05, 1.0)
    if name == "bfgs":
        made.restart(quadratic(made.point.x))
    return made


def answers(question):
    """Return values, or the one row of differences that stands for partial derivatives."""
    if question.kind == "values":
        return np.array([quadratic(question.at(j)) for j in range(len(question))])
    x, h = question.at(0), 1e-6 * np.eye(P)
    return np.array([[(quadratic(x + e) - quadratic(x - e)) / 2e-6 for e in h]])[
        :, question.support
    ]


def step(search, noise):
    question = search.pose()
    if question is None:
        return False
    values = answers(question)
    noisy = noise * np.sin(1e3 * np.arange(len(values)) + search.n_evals)
    search.take(question, values + noisy if noise else values)
    return True


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_a_search_goes_on_from_its_state_bit_for_bit(name):
    noise = 0.05 if name in ("reach", "radii", "judge", "ladder", "walk", "check") else 0.0
    whole, cut = made(name), made(name)
    for _ in range(40):
        if whole.finished or not step(whole, noise):
            break
        step(cut, noise)
        again = made(name, seed=99)  # its own streams must come from the state
        again.point.put(cut.point.x)
        again.load_state_dict(cut.state_dict())
        cut = again
    assert np.array_equal(whole.point.x, cut.point.x)
    assert repr(whole.state_dict()) == repr(cut.state_dict())
    assert whole.n_evals > 0 or isinstance(whole, Rest)


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_the_cost_is_what_the_next_question_costs(name):
    search = made(name)
    for _ in range(30):
        if search.finished:
            break
        cost = search.cost
        question = search.pose()
        if question is None:
            break
        assert len(question) == cost or (cost == 1 and not search.sequential)
        search.take(question, answers(question))


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_a_search_survives_lost_values(name):
    search, rng = made(name), np.random.default_rng(0)
    for _ in range(60):
        if search.finished:
            break
        question = search.pose()
        if question is None:
            break
        values = answers(question)
        values[rng.random(len(values)) < 0.3] = np.nan
        with np.errstate(all="ignore"):
            search.take(question, values)
        assert np.all(np.isfinite(search.point.x))


def test_sequential_searches_wait_and_others_do_not():
    for name in SEARCHES:
        search = made(name)
        first, second = search.pose(), search.pose()
        if search.sequential:
            assert second is None
        elif isinstance(search, Stepping):
            assert first is not None and second is not None
            assert first.sample != second.sample


def test_the_skeleton_of_the_docs_runs():
    text = (DOCS / "adding-a-search.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    space = {"__name__": "skeleton"}
    exec(compile(code, "adding-a-search.md", "exec"), space)
    result = scgd.minimize(
        quadratic, np.zeros(P), method=Planned("walk", space["story"]), max_evals=500, seed=2
    )
    assert result.fun < 1e-2 and "walk 500" in result.message
