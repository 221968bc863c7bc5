"""Replaying the authors' own draws gives their curves, row for row."""

import dataclasses

import numpy as np
import pytest
from published import (
    METHODS,
    N_PASSES,
    curves,
    needs_curves,
    zeroth_order,
    zeroth_order_problem,
)

from scgd_paper.linear.directions import step_along
from scgd_paper.linear.inputs import as_problem
from scgd_paper.linear.objective import objective
from scgd_paper.linear.solver import DEFAULT
from scgd_paper.linear.walks import Run, Timetable

FIRST_SEED = {"ridge": 41, "logistic": 42}


class Replay:
    """A run driven by NumPy's legacy draws in the authors' order instead of our streams."""

    def __init__(self, kind, method, seed):
        problem = zeroth_order_problem(kind)
        parts = zeroth_order(kind, method, 250)
        parts.pop("shared_sample", None)
        recipe = dataclasses.replace(DEFAULT, **parts)
        self.problem = as_problem(problem.X, problem.y, loss=problem.loss, l2=problem.l2)
        self.n_samples, self.n_coords = problem.X.shape
        self.n_steps = self.n_coords * N_PASSES
        shared = method != "full"
        self.run = Run(self.problem, recipe, 1, shared, np.zeros(250), 0)
        rng = np.random.RandomState(seed)
        self.rows = rng.choice(self.n_samples, size=(self.n_steps, 1))
        self.rng, self.thetas = rng, [np.zeros(250)]
        self.table = Timetable(recipe, 250, self.n_steps, self.run.block)

    def explore(self, rows, rates, radii):
        self.run.walk.rows[: len(rows)] = rows
        self.run.explore(0, len(rows), rates, radii)

    def record(self):
        self.thetas.append(self.run.walk.theta.copy())

    def by_coordinates(self, choose):
        """Draw each step's coordinate with ``choose(step numbers)`` and learn after each phase."""
        walk, p = self.run.walk, self.n_coords
        rates, radii = self.table.chunk(0, self.n_steps)
        mixings, length, done = self.table.mixings(0, self.n_steps), len(walk.rows), 0
        while done < self.n_steps:
            stop = min(done + length, self.n_steps)
            coords, probs = choose(np.arange(done, stop))
            walk.coords[: len(coords)], walk.probs[: len(coords)] = coords, probs
            cut = stop - stop % p
            for first, last in ((done, max(cut, done)), (max(cut, done), stop)):
                here = slice(first - done, last - done)
                walk.coords[: last - first] = coords[here]
                self.explore(self.rows[first:last], rates[first:last], radii[first:last])
                self.grads = np.concatenate(
                    [getattr(self, "grads", []), walk.grads[: last - first]]
                )
                if last > first and last % p == 0:
                    self.record()
            grads, self.grads = self.grads, []
            if stop - done == length:
                phase = int(done // length)
                self.run.policy.update(self.run.state, coords, probs, grads, mixings[phase])
            done = stop

    def uniform(self):
        coords = self.rng.randint(0, self.n_coords, self.n_steps)
        self.by_coordinates(lambda t: (coords[t], np.full(len(t), 1 / self.n_coords)))

    def musketeer(self):
        """Draw as ``choice(p, p=weights)`` does: a uniform, looked up in the cumulated weights."""
        uniforms = self.rng.random_sample(self.n_steps)

        def choose(t):
            weights = self.run.weights
            cdf = weights.cumsum()
            coords = np.searchsorted(cdf / cdf[-1], uniforms[t], side="right")
            return coords, weights[coords]

        self.by_coordinates(choose)

    def full(self):
        self.run.walk.coords[:] = np.arange(self.n_coords)
        rates, radii = self.table.chunk(0, N_PASSES)
        for t in range(N_PASSES):
            rows = self.rows[t * self.n_coords : (t + 1) * self.n_coords].T
            self.explore(rows, rates[t : t + 1], radii[t : t + 1])
            self.record()

    def sphere(self):
        rates, radii = self.table.chunk(0, self.n_steps)
        for t in range(self.n_steps):
            u = self.rng.randn(self.n_coords)
            u /= np.linalg.norm(u)
            walk = self.run.walk
            step_along(self.problem, walk, walk.rule, u, self.rows[t], rates[t], radii[t])
            if (t + 1) % self.n_coords == 0:
                self.record()


@needs_curves
@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["ridge", "logistic"])
def test_the_authors_draws_give_their_curves(kind, method, row):
    replay = Replay(kind, method, FIRST_SEED[kind] + row)
    getattr(replay, method.split("-")[0])()
    ours = objective(replay.problem, np.stack(replay.thetas))
    theirs = curves(f"zo_{kind}_alpha5")[method][row]
    stored = 0.5 * np.spacing(theirs)  # the curves are stored in single precision
    assert np.all(np.abs(ours - theirs) <= 1e-9 + stored)
