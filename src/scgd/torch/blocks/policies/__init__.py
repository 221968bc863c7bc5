"""Which block to train next: laws and plain baselines, one file each."""

from scgd.torch.blocks.policies.base import BlockLaw, BlockPolicy
from scgd.torch.blocks.policies.cyclic import Cyclic
from scgd.torch.blocks.policies.inverse_cost import InverseCost
from scgd.torch.blocks.policies.misa import MISA
from scgd.torch.blocks.policies.musketeer import BlockMusketeer
from scgd.torch.blocks.policies.shuffled import Shuffled
from scgd.torch.blocks.policies.top import Top
from scgd.torch.blocks.policies.top_down import TopDown
from scgd.torch.blocks.policies.uniform import UniformBlocks

__all__ = [
    "BLOCK_POLICIES",
    "MISA",
    "BlockLaw",
    "BlockMusketeer",
    "BlockPolicy",
    "Cyclic",
    "InverseCost",
    "Shuffled",
    "Top",
    "TopDown",
    "UniformBlocks",
    "find_policy",
]

BLOCK_POLICIES: dict[str, type[BlockPolicy]] = {
    "inverse-cost": InverseCost,
    "cyclic": Cyclic,
    "shuffled": Shuffled,
    "uniform": UniformBlocks,
    "top": Top,
    "top-down": TopDown,
    "musketeer": BlockMusketeer,
    "misa": MISA,
}


def find_policy(policy: object) -> BlockPolicy:
    """Return a policy by name, or the object given."""
    if isinstance(policy, BlockPolicy):
        return policy
    if isinstance(policy, str) and policy in BLOCK_POLICIES:
        return BLOCK_POLICIES[policy]()
    raise ValueError(
        f"policy must be one of {tuple(BLOCK_POLICIES)} or a BlockPolicy object, got {policy!r}"
    )
