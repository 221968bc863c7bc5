"""What helps a run that found nothing better than where it began."""

from __future__ import annotations

__all__ = ["remedy"]

STUCK = (
    "Nothing improved on x0; give scale= (the typical size of a coordinate) or bounds=, more "
    "evaluations, or another x0."
)
INSTEAD = ", or use method='auto'"
LARGEST_SIZE = 1e140
"""Values beyond it (or below its inverse) have gradients whose squares leave the numbers."""


def remedy(value: float, *, recipe: bool) -> str:
    """Return what helps a run that found nothing better than x0, where f has this value.

    A ``recipe`` takes steps that divide by the mean square of slopes; others do not.

    Examples
    --------
    >>> remedy(1e-300, recipe=True).split(', ')[0]
    'Nothing improved on x0: values of f are near 1e-300'
    """
    size = abs(value)
    if 0.0 < size < 1.0 / LARGEST_SIZE or size > LARGEST_SIZE:
        return (
            f"Nothing improved on x0: values of f are near {size:.0e}, and squares of its slopes "
            f"leave the numbers; multiply f so that they are near 1{INSTEAD if recipe else ''}."
        )
    return STUCK
