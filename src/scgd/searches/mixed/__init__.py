"""Searches that know steps, choices and conditions: over a grid in the unit cube."""

from scgd.searches.mixed.mutations import Mutations
from scgd.searches.mixed.niches import Niches

__all__ = ["Mutations", "Niches"]
