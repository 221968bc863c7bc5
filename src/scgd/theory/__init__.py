"""The paper's conditions and bounds, as functions one can ask."""

from scgd.theory.bias import bias_constant
from scgd.theory.conditions import Conditions, TheoryWarning, check, known, warn_if_violated
from scgd.theory.gap import Constants, gap_bound, gap_order, gap_rate, gap_recursion
from scgd.theory.regret import regret_bound, regret_terms

__all__ = [
    "Conditions",
    "Constants",
    "TheoryWarning",
    "bias_constant",
    "check",
    "gap_bound",
    "gap_order",
    "gap_rate",
    "gap_recursion",
    "known",
    "regret_bound",
    "regret_terms",
    "warn_if_violated",
]
