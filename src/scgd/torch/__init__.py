"""PyTorch optimizers that move sampled coordinates, with gradients or with forward passes only."""

from scgd.torch.first_order import SCGD

__all__ = ["SCGD"]
