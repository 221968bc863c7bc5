"""PyTorch optimizers that move sampled coordinates, with gradients or with forward passes only."""

from scgd.torch.blocks import BlockOptimizer
from scgd.torch.directions import MeZO, SparseMeZO
from scgd.torch.distributed import reduce_sampled
from scgd.torch.first_order import SCGD
from scgd.torch.forward_loss import ForwardLoss
from scgd.torch.zeroth_order import ZeroOrderSCGD

__all__ = [
    "SCGD",
    "BlockOptimizer",
    "ForwardLoss",
    "MeZO",
    "SparseMeZO",
    "ZeroOrderSCGD",
    "reduce_sampled",
]
