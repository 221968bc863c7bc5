"""Search spaces: named parameters with bounds, steps, choices and conditions.

A :class:`Space` translates between what users think in, a dict of values, and what searches move
in, points of the unit cube with one coordinate per number. :class:`Grid` is the cube's side of it:
which coordinates have steps, and which are without effect where.
"""

from scgd.spaces.grid import Condition, Grid
from scgd.spaces.parameters import Choice, Float, Int, Parameter
from scgd.spaces.space import InSpace, Space
from scgd.spaces.tables import read_space

__all__ = [
    "Choice",
    "Condition",
    "Float",
    "Grid",
    "InSpace",
    "Int",
    "Parameter",
    "Space",
    "read_space",
]
