"""Models that lead a portfolio where evaluations are few: quadratic ones, or a Gaussian process."""

from __future__ import annotations

import numpy as np

from scgd.problem import Known, Problem
from scgd.strategies.asks import Asking
from scgd.strategies.bfgs import BFGS
from scgd.strategies.box import Box
from scgd.strategies.budget import Budget
from scgd.strategies.gaussian_process import gaussian_process, models
from scgd.strategies.member import Member
from scgd.strategies.quadratic_model import (
    SCARCE,
    first_points,
    first_radius,
    interpolate_quadratics,
)
from scgd.strategies.restarts import Shared
from scgd.typing import Floats

__all__ = ["first_step", "is_scarce", "lead_by_process", "lead_where_few"]

MODELLED = 64
"""Coordinates up to which quadratic models lead: an update of one costs as much as n^2."""
FEW = 12
"""Evaluations per coordinate below which they go on after a first step: with more, BFGS may."""
PARABOLA = (0.4, 0.9)
"""What a step gained of what the slope promised, where f is near a parabola along it: that gains
half. Ripples gain less, and a slope that grows on the way more."""


def is_scarce(box: Box, budget: Budget) -> bool:
    """Tell whether a model of so few evaluations can lead at once: each evaluation moves it."""
    n = box.start.size
    affordable = budget.left > n + 2 or models(box.least, box.most, budget.total)
    return n <= MODELLED and budget.total < SCARCE * n and affordable


def lead_where_few(share: Shared, x: Floats, f: float) -> Asking:
    """Go down by quadratic models where their first points are affordable, else by a process."""
    if share.budget.left > x.size + 2:
        yield from lead_by_model(share)
    else:
        yield from lead_by_process(share, x, f)


def lead_by_model(share: Shared) -> Asking:
    """Go down by quadratic models to the end of the budget, or until they have converged."""
    yield share.led_by("quadratic model")
    best, box = share.best, share.box
    n_points = first_points(best.x.size, share.budget)
    search = interpolate_quadratics(best.x, best.f, first_radius(box), box, n_points)
    yield from share.member("quadratic model", search).finish()


def lead_by_process(share: Shared, x: Floats, f: float) -> Asking:
    """Look at the box by a Gaussian process to the end of the budget, where it can."""
    box, best = share.box, share.best
    if models(box.least, box.most, share.budget.total) and not share.has_gradient:
        known = Known(np.stack([x, best.x]), np.array([f, best.f]))
        problem = Problem(x, box.least, box.most, None, noise=0.0, known=known)
        yield share.led_by("Gaussian process")
        search = gaussian_process(problem, share.budget, share.rng)
        yield from share.member("Gaussian process", search).finish()


def first_step(share: Shared, newton: BFGS, descent: Member) -> Asking:
    """Take one step of BFGS; what it gained tells whether a model goes on from there.

    Where f is near a parabola along the step BFGS does. Where f is rough a Gaussian process looks
    at the box, where there is one; else, if evaluations are few, quadratic models go on.
    """
    x, f, p = newton.x, newton.f, newton.p
    while newton.agreement is None and not descent.over:
        yield from descent.run(1)
    gained = newton.agreement
    if gained is None or PARABOLA[0] <= gained <= PARABOLA[1]:
        return
    if gained < PARABOLA[0]:
        yield from lead_by_process(share, x, f)
    if p <= MODELLED and p + 2 < share.budget.left < FEW * p:
        yield from lead_by_model(share)
