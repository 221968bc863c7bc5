"""Searches: everything that asks for evaluations, one file each.

:mod:`scgd.searches.base` has the one interface, :mod:`scgd.searches.random` a skeleton.
"""

from scgd.searches.base import Body, Finding, Search, Standing, Stop
from scgd.searches.bfgs import ActiveBFGS
from scgd.searches.classify import Classify, Noise
from scgd.searches.descent import Descent
from scgd.searches.judge import Judge, Verdict
from scgd.searches.mixed import Mutations, Niches
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
from scgd.searches.watch import Watch

__all__ = [
    "SEARCHES",
    "ActiveBFGS",
    "Body",
    "Classify",
    "Descent",
    "Finding",
    "Judge",
    "Leg",
    "Length",
    "Mutations",
    "Niches",
    "Noise",
    "OwnRadii",
    "Parabolas",
    "Race",
    "Radii",
    "RandomSearch",
    "Reach",
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
    "Watch",
]

SEARCHES: dict[str, type[Search]] = {
    search.name: search
    for search in (
        ActiveBFGS, Classify, Descent, Judge, Mutations, Niches, Parabolas, Race, Radii,
        RandomSearch, Reach, Rest, Rounding, ScaleSearch, Stepping, Watch,
    )
}  # fmt: skip
