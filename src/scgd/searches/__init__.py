"""Searches: everything that asks for evaluations, one file each.

:mod:`scgd.searches.base` has the one interface, :mod:`scgd.searches.random` a skeleton.
"""

from scgd.searches.agreed import Agreed, Agreement
from scgd.searches.archive import Archive
from scgd.searches.around import Around
from scgd.searches.base import Body, Finding, Relevance, Search, Standing, Stop
from scgd.searches.bfgs import ActiveBFGS
from scgd.searches.check import Check, Progress
from scgd.searches.classify import Classify, Noise
from scgd.searches.crowd import Crowd
from scgd.searches.descent import Descent
from scgd.searches.doubt import Doubt, Doubted
from scgd.searches.filling import Filling
from scgd.searches.judge import Judge, Verdict
from scgd.searches.ladder import Footing, Ladder
from scgd.searches.leg import Leg
from scgd.searches.mixed import Mutations, Niches
from scgd.searches.parabolas import Parabolas
from scgd.searches.race import Race, Raced
from scgd.searches.radii import OwnRadii, Radii
from scgd.searches.random import RandomSearch
from scgd.searches.reach import Reach, Signal
from scgd.searches.repeat import Repeat, Repeats
from scgd.searches.rest import Rest
from scgd.searches.rounding import Rounding, RoundingError
from scgd.searches.scale import Length, ScaleSearch
from scgd.searches.screen import Screen, Screened
from scgd.searches.slide import Slid, Slide
from scgd.searches.slopes import Slopes
from scgd.searches.start import Start, Started
from scgd.searches.stepping import Stepping
from scgd.searches.told import Told
from scgd.searches.walk import Walk
from scgd.searches.watch import Watch

__all__ = [
    "SEARCHES",
    "ActiveBFGS",
    "Agreed",
    "Agreement",
    "Archive",
    "Around",
    "Body",
    "Check",
    "Classify",
    "Crowd",
    "Descent",
    "Doubt",
    "Doubted",
    "Filling",
    "Finding",
    "Footing",
    "Judge",
    "Ladder",
    "Leg",
    "Length",
    "Mutations",
    "Niches",
    "Noise",
    "OwnRadii",
    "Parabolas",
    "Progress",
    "Race",
    "Raced",
    "Radii",
    "RandomSearch",
    "Reach",
    "Relevance",
    "Repeat",
    "Repeats",
    "Rest",
    "Rounding",
    "RoundingError",
    "ScaleSearch",
    "Screen",
    "Screened",
    "Search",
    "Signal",
    "Slid",
    "Slide",
    "Slopes",
    "Standing",
    "Start",
    "Started",
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
        ActiveBFGS, Agreed, Check, Classify, Crowd, Descent, Doubt, Judge, Ladder, Mutations,
        Niches, Parabolas, Race, Radii, RandomSearch, Reach, Repeat, Rest, Rounding, ScaleSearch,
        Screen, Slide, Slopes, Start, Stepping, Walk, Watch,
    )
}  # fmt: skip
