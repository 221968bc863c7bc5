"""Searches: everything that asks for evaluations, one file each.

:mod:`scgd.searches.base` has the one interface, :mod:`scgd.searches.random` a skeleton.
"""

from scgd.searches.archive import Archive
from scgd.searches.base import Body, Finding, Search, Standing, Stop
from scgd.searches.bfgs import ActiveBFGS
from scgd.searches.check import Check, Progress
from scgd.searches.classify import Classify, Noise
from scgd.searches.descent import Descent
from scgd.searches.doubt import Doubt, Repeats
from scgd.searches.judge import Judge, Verdict
from scgd.searches.ladder import Footing, Ladder
from scgd.searches.parabolas import Parabolas
from scgd.searches.race import Race
from scgd.searches.radii import OwnRadii, Radii
from scgd.searches.random import RandomSearch
from scgd.searches.reach import Reach, Signal
from scgd.searches.rest import Rest
from scgd.searches.rounding import Rounding, RoundingError
from scgd.searches.scale import Length, ScaleSearch
from scgd.searches.stepping import Leg, Stepping
from scgd.searches.told import Told
from scgd.searches.walk import Walk
from scgd.searches.watch import Watch

__all__ = [
    "SEARCHES",
    "ActiveBFGS",
    "Archive",
    "Body",
    "Check",
    "Classify",
    "Descent",
    "Doubt",
    "Finding",
    "Footing",
    "Judge",
    "Ladder",
    "Leg",
    "Length",
    "Noise",
    "OwnRadii",
    "Parabolas",
    "Progress",
    "Race",
    "Radii",
    "RandomSearch",
    "Reach",
    "Repeats",
    "Rest",
    "Rounding",
    "RoundingError",
    "ScaleSearch",
    "Search",
    "Signal",
    "Standing",
    "Stepping",
    "Stop",
    "Told",
    "Verdict",
    "Walk",
    "Watch",
]

SEARCHES: dict[str, type[Search]] = {
    search.name: search
    for search in (
        ActiveBFGS, Check, Classify, Descent, Doubt, Judge, Ladder, Parabolas, Race, Radii,
        RandomSearch, Reach, Rest, Rounding, ScaleSearch, Stepping, Walk, Watch,
    )
}  # fmt: skip
