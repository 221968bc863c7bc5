"""One process of a trainer with two: ``python trainer_worker.py NAME FOLDER``, as torchrun would."""

import os
import sys
from pathlib import Path

import torch
from test_block_trainers import hugging_face, lightning_module, weights

from scgd.torch.blocks.trainers import lightning_callback, unwrap


def run_hugging_face(folder):
    trainer = hugging_face(folder / "out", "inverse-cost")
    trainer.train()
    return trainer.model, unwrap(trainer.optimizer)


def run_lightning(folder):
    import lightning

    module = lightning_module("inverse-cost")
    x = torch.randn(80, 4, generator=torch.Generator().manual_seed(0))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=4)
    trainer = lightning.Trainer(
        default_root_dir=folder, max_epochs=2, accelerator="cpu", devices=2, strategy="ddp",
        logger=False, enable_progress_bar=False, enable_model_summary=False,
        enable_checkpointing=False, callbacks=[lightning_callback()],
    )  # fmt: skip
    trainer.fit(module, loader)
    return module, unwrap(trainer.optimizers[0])


if __name__ == "__main__":
    torch.set_num_threads(1)
    name, folder = sys.argv[1], Path(sys.argv[2])
    model, optimizer = {"hugging_face": run_hugging_face, "lightning": run_lightning}[name](folder)
    row = {"weights": weights(model), "visits": optimizer.book.visit}
    torch.save(row, folder / f"{name}-{os.environ['RANK']}.pt")
