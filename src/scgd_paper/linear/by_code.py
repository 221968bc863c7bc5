"""The built-in step kernels behind one number: the paper's engines compile one loop for all."""

from __future__ import annotations

from scgd.compiling import njit
from scgd.steps.rules import (
    StepRule,
    adam_kernel,
    learned_kernel,
    momentum_kernel,
    rms_kernel,
    sgd_kernel,
    wiener_kernel,
)

__all__ = ["code_of", "compiled_sgd", "move"]

KERNELS = (
    sgd_kernel, momentum_kernel, rms_kernel, adam_kernel, learned_kernel, wiener_kernel
)  # fmt: skip

compiled_sgd = njit(cache=True, inline="always")(sgd_kernel)


def code_of(rule: StepRule) -> int:
    """Return the number of a rule's kernel, or say where the rule can be used."""
    if rule.kernel not in KERNELS:
        raise ValueError(
            f"linear models know the built-in step rules only, not {type(rule).__name__}; "
            "use it with scgd.minimize"
        )
    return KERNELS.index(rule.kernel)


@njit(cache=True, error_model="numpy")
def move(code, k, grad, rate, hyper, slots):  # type: ignore[no-untyped-def]
    """Dispatch to the kernel with this code: what is subtracted from coordinate ``k``."""
    if code == 0:
        return sgd_kernel(k, grad, rate, hyper, slots)
    if code == 1:
        return momentum_kernel(k, grad, rate, hyper, slots)
    if code == 2:
        return rms_kernel(k, grad, rate, hyper, slots)
    if code == 3:
        return adam_kernel(k, grad, rate, hyper, slots)
    if code == 4:
        return learned_kernel(k, grad, rate, hyper, slots)
    return wiener_kernel(k, grad, rate, hyper, slots)
