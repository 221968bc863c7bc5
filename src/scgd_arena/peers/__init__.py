"""The methods of the arena, each with the domain it is run in.

A method is a function of (oracle, seed) that returns the point it recommends. Where the sample can
be held fixed, methods that know how to use that may. Peers are told the box in which the minimum
lies, its width, the bounds that a problem has, and nothing else; a run is stopped after
``max_seconds`` of CPU time and counts with what it has reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from math import inf

from scgd.errors import UsageError, nearest
from scgd_arena.oracle import Method
from scgd_arena.peers.local import bobyqa, evolution, newuoa, restarted, scipy_search
from scgd_arena.peers.others import nevergrad, optuna, torchzero
from scgd_arena.peers.ours import scgd_method
from scgd_arena.peers.population import ars, cma, cma_integers, random_search
from scgd_arena.peers.spsa import spsa
from scgd_arena.peers.trust import turbo
from scgd_arena.rollouts import ROLLOUTS

__all__ = ["METHODS", "OURS", "STANDING", "TUNED", "Peer", "check_methods"]

TUNED = "spsa-tuned"
OURS = ("auto", "musketeer")


@dataclass(frozen=True)
class Peer:
    """A method and where it is run.

    Attributes
    ----------
    run
        The method itself.
    micros
        What an evaluation costs it, about, in microseconds at 20 coordinates (orders the work).
    exact, noisy
        Whether it is run where f repeats itself, and where it does not.
    min_coords, max_coords, max_evals
        The smallest and the largest problem it is run on.
    strong
        Whether it is often the best; such runs are made first.
    needs
        The package it comes from.
    only
        How the names of the only problems begin that it is run on; empty for all.
    """

    run: Method
    micros: float
    exact: bool = True
    noisy: bool = True
    min_coords: int = 1
    max_coords: float = inf
    max_evals: float = inf
    strong: bool = False
    needs: str = "scgd"
    only: tuple[str, ...] = ()

    def takes(self, name: str, n_coords: int, repeats: bool, budget: int) -> bool:
        """Whether a problem lies in its domain."""
        right = self.exact if repeats else self.noisy
        fits = self.min_coords <= n_coords <= self.max_coords and budget <= self.max_evals
        return right and fits and (not self.only or name.startswith(self.only))


ROLLED = (*ROLLOUTS, "rollout", "power")
METHODS: dict[str, Peer] = {
    "auto": Peer(scgd_method("auto"), 30),
    "musketeer": Peer(scgd_method("musketeer"), 10),
    "random": Peer(random_search, 30, max_evals=1e4),
    "l-bfgs-b": Peer(restarted(scipy_search("L-BFGS-B")), 15, noisy=False, strong=True),
    "powell": Peer(restarted(scipy_search("Powell")), 15, strong=True),
    "nelder-mead": Peer(restarted(scipy_search("Nelder-Mead")), 15, max_coords=10, strong=True),
    "newuoa": Peer(restarted(newuoa), 30, max_coords=100, strong=True, needs="nlopt"),
    "cma": Peer(cma("full"), 60, max_coords=100, strong=True, needs="cma"),
    "cma-near": Peer(cma("full", 0.1), 60, max_coords=100, exact=False, strong=True, needs="cma"),
    "cma-noise": Peer(
        cma("full", 0.1, True), 70, max_coords=100, exact=False, strong=True, needs="cma"
    ),
    "cma-sep": Peer(cma("sep"), 50, strong=True, needs="cma"),
    "cma-vkd": Peer(cma("vkd"), 150, noisy=False, min_coords=41, max_coords=100, needs="cma"),
    "cma-int": Peer(cma_integers, 400, only=("bbob-mixint",), strong=True, needs="cma"),
    "spsa": Peer(spsa(0.03, 0.05), 12, exact=False, strong=True),
    "spsa-near": Peer(spsa(0.01, 0.02), 12, exact=False),
    TUNED: Peer(spsa(0.03, 0.05), 100, exact=False),
    "ars": Peer(ars, 20, only=ROLLED, strong=True),
    "cobyqa": Peer(restarted(scipy_search("COBYQA")), 3e3, max_coords=40, max_evals=2000),
    "tbpsa": Peer(nevergrad("TBPSA"), 400, exact=False, max_evals=5000, needs="nevergrad"),
    # Where f repeats, and below 20 coordinates, NGOpt's meta-model fails with NumPy 2.4.
    "ngopt": Peer(
        nevergrad("NGOpt"), 800, exact=False, min_coords=20, max_evals=2000, needs="nevergrad"
    ),
    "py-bobyqa": Peer(restarted(bobyqa), 3e4, max_coords=40, max_evals=600, needs="pybobyqa"),
    "turbo": Peer(turbo, 1e5, max_evals=200, max_coords=40, needs="botorch"),
    "optuna-gp": Peer(optuna("gp"), 1e5, max_evals=200, max_coords=40, needs="optuna"),
    "optuna-tpe": Peer(optuna("tpe"), 2e4, max_evals=1000, max_coords=40, needs="optuna"),
    "optuna-cmaes": Peer(optuna("cmaes"), 5000, max_evals=1000, needs="cmaes"),
    "ng-noisy": Peer(nevergrad("OptimisticNoisyOnePlusOne"), 300, exact=False, needs="nevergrad"),
    "de": Peer(restarted(evolution), 30),
    "torchzero": Peer(torchzero, 600, exact=False, needs="torchzero"),
}
"""All methods by name. :data:`TUNED` is set per cell, on instances nobody is judged on."""
STANDING = tuple(METHODS)[2 : list(METHODS).index("optuna-tpe") + 1]
"""The peers whose rows are stored."""


def check_methods(names: list[str]) -> None:
    """Refuse unknown methods and missing packages before anything runs."""
    for name in names:
        if name not in METHODS:
            raise UsageError(f"--methods: {name!r} is not known{nearest(name, METHODS)}")
        if find_spec(METHODS[name].needs) is None:
            raise UsageError(
                f"--methods: {name!r} needs the package {METHODS[name].needs!r}; "
                "pip install 'scgd[peers]'"
            )
