"""What a visit earns (Eqs. 5 and 6), in compiled code."""

from scgd.compiling import njit

__all__ = ["ABSOLUTE", "AVERAGE", "GAINS", "SQUARE", "reward"]

GAINS = ("average", "absolute", "square")
AVERAGE, ABSOLUTE, SQUARE = range(3)
# Rewards are clipped here so that sums of them stay finite.
LARGEST = 1e280


@njit(cache=True)
def reward(gain, grad, prob):  # type: ignore[no-untyped-def]
    """Return gain(g) / d, Eq. (5) and (6), clipped; an undefined gradient earns nothing."""
    if gain == ABSOLUTE:
        grad = abs(grad)
    elif gain == SQUARE:
        grad = grad * grad
    earned = grad / prob
    return min(max(earned, -LARGEST), LARGEST) if earned == earned else 0.0
