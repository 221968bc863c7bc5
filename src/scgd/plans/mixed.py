"""Stories for search spaces: a model while evaluations are few, mutations beyond."""

from __future__ import annotations

from scgd.plans.base import Ground, Telling
from scgd.searches import Mutations, Niches

__all__ = ["mutate", "niches", "over_space"]

LARGEST_MODEL = 40
"""Coordinates up to which a Gaussian process is worth its while."""
FEW = 300
"""Evaluations up to which real numbers alone are left to it."""


def over_space(ground: Ground) -> Telling | None:
    """Return the story for a space; None where it has real numbers only, and budget for slopes."""
    space = ground.problem.space
    assert space is not None
    if space.continuous and ground.budget > FEW:
        return None
    return niches(ground) if space.n_coords <= LARGEST_MODEL else mutate(ground)


def niches(ground: Ground) -> Telling:
    """Let a Gaussian process choose among everywhere, niches and near."""
    ground.sentence = "A Gaussian process with niches, then mutations."
    yield Niches(
        ground.problem, ground.point, ground.rng(), ground.room, sampled=ground.samples.controlled
    )


def mutate(ground: Ground) -> Telling:
    """Mutate the best point."""
    ground.sentence = "Mutations of the best point."
    yield Mutations(
        ground.problem, ground.point, ground.rng(), ground.room, sampled=ground.samples.controlled
    )
