"""The paper's conditions and bounds, as functions one can ask."""

from scgd.theory import Conditions, check, known
from scgd_paper.theory.bias import bias_constant
from scgd_paper.theory.gap import Constants, gap_bound, gap_order, gap_rate, gap_recursion
from scgd_paper.theory.regret import regret_bound, regret_terms

__all__ = [
    "Conditions",
    "Constants",
    "bias_constant",
    "check",
    "gap_bound",
    "gap_order",
    "gap_rate",
    "gap_recursion",
    "known",
    "regret_bound",
    "regret_terms",
]
