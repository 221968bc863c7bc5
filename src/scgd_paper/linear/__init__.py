"""The compiled engine of the paper's linear experiments: ``solve``, and the data they run on."""

from scgd_paper.linear.plan import LinearResult
from scgd_paper.linear.problems import BlockData, block_data
from scgd_paper.linear.solver import solve

__all__ = ["BlockData", "LinearResult", "block_data", "solve"]
