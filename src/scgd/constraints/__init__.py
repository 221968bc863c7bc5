"""Constraints: linear ones by projection, others by an augmented Lagrangian around any method."""

from scgd.constraints.augmented import constrained
from scgd.constraints.feasibility import by_feasibility
from scgd.constraints.given import Constraints, Measured
from scgd.constraints.linear import Polyhedron
from scgd.constraints.merit import Merit

__all__ = ["Constraints", "Measured", "Merit", "Polyhedron", "by_feasibility", "constrained"]
