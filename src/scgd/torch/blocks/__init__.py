"""Training one block of a model at a time, with gradients and state for that block alone."""

from scgd.torch.blocks.optimizer import BlockOptimizer
from scgd.torch.blocks.policies import (
    BLOCK_POLICIES,
    MISA,
    BlockMusketeer,
    Cyclic,
    InverseCost,
    Shuffled,
    Top,
    TopDown,
    UniformBlocks,
)
from scgd.torch.blocks.policy import BlockPolicy, RandomBlockPolicy

__all__ = [
    "BLOCK_POLICIES",
    "MISA",
    "BlockMusketeer",
    "BlockOptimizer",
    "BlockPolicy",
    "Cyclic",
    "InverseCost",
    "RandomBlockPolicy",
    "Shuffled",
    "Top",
    "TopDown",
    "UniformBlocks",
]
