"""The built-in kernels behind one number, for engines that compile one loop for all of them."""

from __future__ import annotations

from scgd.compiling import njit
from scgd.steps.adam import adam_kernel
from scgd.steps.learned import learned_kernel
from scgd.steps.momentum import momentum_kernel
from scgd.steps.rms import rms_kernel
from scgd.steps.rule import StepRule
from scgd.steps.sgd import sgd_kernel
from scgd.steps.wiener import wiener_kernel

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
