"""What helps a run that found nothing better than where it began."""

from __future__ import annotations

__all__ = ["remedy"]

STUCK = (
    "Nothing improved on x0; give scale= (the typical size of a coordinate) or bounds=, more "
    "evaluations, or another x0."
)
LARGEST_SIZE = 1e140
"""Values beyond it (or below its inverse) have gradients whose squares leave the numbers."""


def remedy(value: float) -> str:
    """Return what helps a run that found nothing better than x0, where f has this value.

    Examples
    --------
    >>> remedy(1e-300).split(', ')[0]
    'Nothing improved on x0: values of f are near 1e-300'
    """
    size = abs(value)
    if 0.0 < size < 1.0 / LARGEST_SIZE or size > LARGEST_SIZE:
        return (
            f"Nothing improved on x0: values of f are near {size:.0e}, and squares of its slopes "
            "leave the numbers; multiply f so that they are near 1, or use method='auto'."
        )
    return STUCK
