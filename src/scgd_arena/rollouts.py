"""Linear policies in gymnasium: the cost of an episode as a function of the weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from scgd.typing import Floats
from scgd_arena.problems import Task

__all__ = ["ROLLOUTS", "rollout"]

JUDGED = range(1_000_000, 1_000_010)
"""Seeds of the episodes on which a policy is judged; no run sees them."""


@dataclass(frozen=True)
class World:
    """An environment, the return a good policy gets (gaps are measured from it), and habits."""

    name: str
    good: float
    products: bool = False


WORLDS = {
    "pendulum": World("Pendulum-v1", -100.0, products=True),
    "swimmer": World("Swimmer-v5", 370.0),
    "lunarlander": World("LunarLander-v3", 300.0),
    "hopper": World("Hopper-v5", 1000.0),
    "acrobot": World("Acrobot-v1", -70.0),
}


class Episode:
    """Plays one episode with given weights and seed."""

    def __init__(self, world: World) -> None:
        import gymnasium

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.env = gymnasium.make(world.name)
        space = self.env.action_space
        self.n_actions = int(space.n) if hasattr(space, "n") else space.shape[0]
        self.limits = None if hasattr(space, "n") else (space.low, space.high)
        self.products = world.products
        self.n_features = self.features(np.zeros(self.env.observation_space.shape[0])).size

    def features(self, seen: Floats) -> Floats:
        """Return what the policy is linear in: the observation, its products if wanted, and 1."""
        if self.products:
            mixed = [seen[0] * seen[1], seen[1] * seen[2], seen[0] * seen[2]]
            return np.concatenate([seen, mixed, [1.0]])
        return np.append(seen, 1.0)

    def action(self, scores: Floats) -> Any:
        """Return the action: the highest score, or the scores within the limits."""
        if self.limits is None:
            return int(scores.argmax())
        low, high = self.limits
        return np.clip(scores * (high if self.products else 1.0), low, high).astype(np.float32)

    def cost(self, x: Floats, seed: int) -> float:
        """Return the negative return of one episode."""
        weights, total = np.asarray(x).reshape(self.n_actions, -1), 0.0
        seen, _ = self.env.reset(seed=int(seed))
        while True:
            seen, reward, ended, cut, _ = self.env.step(self.action(weights @ self.features(seen)))
            total += float(reward)
            if ended or cut:
                return -total


def rollout(name: str, instance: int = 0) -> Task:
    """Return the mean cost of a linear policy; every evaluation is a fresh episode."""
    world = WORLDS[name]
    episode = Episode(world)

    def make(seed: int) -> Callable[..., float]:
        rng = np.random.default_rng([seed, 21])
        return lambda x: episode.cost(x, int(rng.integers(2**31 - 1)))

    def gap(x: Floats) -> float:
        return world.good + float(np.mean([episode.cost(x, seed) for seed in JUDGED]))

    x0 = np.zeros(episode.n_actions * episode.n_features)
    return Task(name, x0, None, make, gap, domain=(-1.25, 1.25), looks=False)


ROLLOUTS: dict[str, Callable[[int], Task]] = {name: partial(rollout, name) for name in WORLDS}
