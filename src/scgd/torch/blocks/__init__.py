"""Training one block of a model at a time, with gradients and state for that block alone."""

from scgd.torch.blocks.optimizer import BlockOptimizer
from scgd.torch.blocks.policies import (
    BLOCK_POLICIES,
    MISA,
    BlockLaw,
    BlockMusketeer,
    BlockPolicy,
    Cyclic,
    InverseCost,
    Shuffled,
    Top,
    TopDown,
    UniformBlocks,
)

__all__ = [
    "BLOCK_POLICIES",
    "MISA",
    "BlockLaw",
    "BlockMusketeer",
    "BlockOptimizer",
    "BlockPolicy",
    "Cyclic",
    "InverseCost",
    "Shuffled",
    "Top",
    "TopDown",
    "UniformBlocks",
]
