"""PyTorch optimizers: blocks of a model, sampled coordinates, and forward passes only."""

from scgd.torch.blocks import BlockOptimizer
from scgd.torch.distributed import reduce_sampled
from scgd.torch.first_order import SCGD
from scgd.torch.zeroth_order import ZeroOrderSCGD

__all__ = ["SCGD", "BlockOptimizer", "ZeroOrderSCGD", "reduce_sampled"]
