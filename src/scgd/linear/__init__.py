"""Linear models: a compiled engine for experiments, and scikit-learn estimators."""

from scgd.linear.losses import LOSSES
from scgd.linear.problems import BlockData, block_data
from scgd.linear.solver import LinearResult, solve

__all__ = ["LOSSES", "BlockData", "LinearResult", "block_data", "solve"]
