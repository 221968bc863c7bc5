"""Callbacks for trainers that wrap the model after the optimizer was made.

Switching needs no callback: it happens inside ``step``, which trainers call when accumulation ends.
What a callback adds is DDP (the wrapper must reduce the active block only) and, in Hugging Face's
trainer, which steps without a closure, the loss for policies that look at it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from scgd.torch.blocks.optimizer import BlockOptimizer

__all__ = ["hugging_face_callback", "lightning_callback"]


def unwrap(optimizer: Any) -> BlockOptimizer:
    """Return the block optimizer inside accelerate's or Lightning's wrapper."""
    while not isinstance(optimizer, BlockOptimizer):
        inside = getattr(optimizer, "optimizer", None)
        if inside is None:
            raise ValueError(f"the trainer's optimizer is no BlockOptimizer: {optimizer!r}")
        optimizer = inside
    return optimizer


def hugging_face_callback(trainer: Any) -> Any:
    """Return a callback for a ``transformers.Trainer`` that trains with a block optimizer.

    ``trainer.add_callback(hugging_face_callback(trainer))``

    Parameters
    ----------
    trainer
        The trainer, with its optimizer.
    """
    from transformers import TrainerCallback

    class BlockCallback(TrainerCallback):  # type: ignore[misc, unused-ignore]
        """Attaches DDP and tells losses."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            optimizer = unwrap(trainer.optimizer)
            if isinstance(trainer.model_wrapped, DistributedDataParallel):
                optimizer.attach(trainer.model_wrapped)

            def tell(module: Any, inputs: Any, output: Any) -> None:
                loss = output.get("loss") if isinstance(output, dict) else None
                if loss is not None and module.training:
                    optimizer.tell(loss)

            # The list of losses grows: compiled, each step would be compiled anew.
            disable: Any = torch.compiler.disable
            self.hook = optimizer.model.register_forward_hook(disable(tell))

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.hook.remove()

    return BlockCallback()


def lightning_callback() -> Any:
    """Return a callback for a Lightning ``Trainer``; needed with several processes only."""
    import lightning

    class BlockCallback(lightning.Callback):  # type: ignore[misc, unused-ignore]
        """Attaches DDP."""

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            if isinstance(trainer.strategy.model, DistributedDataParallel):
                for optimizer in trainer.optimizers:
                    unwrap(optimizer).attach(trainer.strategy.model)

    return BlockCallback()
