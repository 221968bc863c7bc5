"""What helps a run that found nothing better than where it began."""

from __future__ import annotations

from scgd.problem import Problem

__all__ = ["remedy"]

LARGEST_SIZE = 1e140
"""Values beyond it (or below its inverse) have gradients whose squares overflow."""


def remedy(value: float, problem: Problem) -> str:
    """Return what helps a run that found nothing better than x0, where f has this value.

    What the user has given already is not advised.

    Examples
    --------
    >>> import numpy as np
    >>> remedy(1.0, Problem.check(np.zeros(2), scale=1.0))
    'Nothing improved on x0; try more evaluations or another x0.'
    """
    size = abs(value)
    if 0.0 < size < 1.0 / LARGEST_SIZE or size > LARGEST_SIZE:
        return (
            f"Nothing improved on x0: values of f are near {size:.0e}, and squares of its slopes "
            "overflow; multiply f so that they are near 1."
        )
    scale = "" if problem.scale_known else "scale= (the typical size of a coordinate), "
    bounds = "bounds=, " if scale and not problem.lower.size else ""
    return f"Nothing improved on x0; try {scale}{bounds}more evaluations or another x0."
