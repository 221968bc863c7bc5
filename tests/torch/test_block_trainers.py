"""Blocks inside Hugging Face's trainer, Lightning and accelerate: resume, accumulation, processes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from block_models import BlockOptimizer
from torch import nn

from scgd.torch.blocks import BlockMusketeer
from scgd.torch.blocks.trainers import hugging_face_callback, lightning_callback, unwrap

pytestmark = pytest.mark.filterwarnings("ignore")
BERT = dict(
    vocab_size=50, hidden_size=16, num_hidden_layers=3, num_attention_heads=2,
    intermediate_size=16, max_position_embeddings=16,
)  # fmt: skip
SETTINGS = {"period": 3, "seed": 0, "never": ["embeddings"], "always": ["classifier"], "lr": 1e-2}


def hugging_face(folder, policy="shuffled", **settings):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        **BERT, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    model = transformers.BertForSequenceClassification(config)
    rows = [{"input_ids": torch.arange(8) + i, "labels": torch.tensor(i % 2)} for i in range(32)]
    arguments = transformers.TrainingArguments(
        str(folder), per_device_train_batch_size=4, report_to=[], use_cpu=True,
        disable_tqdm=True, gradient_accumulation_steps=2, save_steps=8, max_steps=20,
        logging_steps=100, **settings,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model, arguments, train_dataset=rows,
        optimizer_cls_and_kwargs=(BlockOptimizer, {"model": model, "policy": policy, **SETTINGS}),
    )  # fmt: skip
    trainer.add_callback(hugging_face_callback(trainer))
    return trainer


def weights(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


@pytest.mark.parametrize(
    "policy", [BlockMusketeer(gain="loss", first_period=3, gain_per="step"), "shuffled"]
)
def test_hugging_face_trainer_accumulates_schedules_and_resumes(tmp_path, policy):
    first = hugging_face(tmp_path, policy)
    first.train()
    optimizer = unwrap(first.optimizer)
    assert optimizer.book.visit == 7  # 20 steps by 3, the seventh visit begun
    again = hugging_face(tmp_path, policy)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-8"))
    assert torch.equal(weights(first.model), weights(again.model))
    assert unwrap(again.optimizer).history == optimizer.history


@pytest.mark.parametrize("reentrant", [False, True])
def test_hugging_face_checkpointing(tmp_path, reentrant):
    plain = hugging_face(tmp_path / "plain", "cyclic")
    plain.train()
    kwargs = {"use_reentrant": reentrant}
    trainer = hugging_face(
        tmp_path, "cyclic", gradient_checkpointing=True, gradient_checkpointing_kwargs=kwargs
    )
    trainer.train()
    assert torch.allclose(weights(plain.model), weights(trainer.model), atol=1e-5)


def lightning_module(policy="shuffled"):
    lightning = pytest.importorskip("lightning")

    class Regression(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            layers = [nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)]
            self.model = nn.Sequential(*layers)

        def training_step(self, batch, index):
            return (self.model(batch[0]) - batch[0][:, :1]).square().mean()

        def configure_optimizers(self):
            return BlockOptimizer(self, policy=policy, period=3, seed=0, lr=0.02)

    return Regression()


def fit(folder, module, epochs, ckpt_path=None):
    lightning = pytest.importorskip("lightning")
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=4)
    trainer = lightning.Trainer(
        default_root_dir=folder, max_epochs=epochs, accelerator="cpu", logger=False,
        enable_progress_bar=False, enable_model_summary=False, accumulate_grad_batches=2,
        gradient_clip_val=1.0, callbacks=[lightning_callback()],
    )  # fmt: skip
    trainer.fit(module, loader, ckpt_path=ckpt_path)
    return trainer


def test_lightning_resumes_in_the_middle_of_a_visit(tmp_path):
    straight = lightning_module()
    fit(tmp_path, straight, 4)
    first = lightning_module()
    trainer = fit(tmp_path, first, 2)  # 16 steps: one into the sixth visit
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    again = lightning_module()
    fit(tmp_path, again, 4, ckpt_path=tmp_path / "half.ckpt")
    assert torch.equal(weights(straight), weights(again))


def test_accelerate(tmp_path):
    accelerate = pytest.importorskip("accelerate")
    # Accelerators of one process share their state; those of the trainers above are over.
    accelerate.state.GradientState._reset_state()
    accelerate.state.AcceleratorState._reset_state(True)
    runs = []
    for prepared in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = BlockOptimizer(model, policy="shuffled", period=2, seed=0, lr=0.02)
        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
        if prepared:
            model, optimizer = accelerator.prepare(model, optimizer)
        for step in range(16):
            x = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
            if prepared:
                with accelerator.accumulate(model):
                    accelerator.backward((model(x) - x[:, :1]).square().mean())
                    optimizer.step()
                    optimizer.zero_grad()
            else:
                ((model(x) - x[:, :1]).square().mean() / 2).backward()
                if step % 2:
                    optimizer.step()
                    optimizer.zero_grad()
        runs.append(weights(model))
        assert unwrap(optimizer).book.visit == 5
    assert torch.equal(*runs)


@pytest.mark.parametrize("name", ["hugging_face", "lightning"])
def test_two_processes(name, tmp_path):
    pytest.importorskip("transformers" if name == "hugging_face" else "lightning")
    worker = Path(__file__).with_name("trainer_worker.py")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = [
        subprocess.Popen(
            [sys.executable, str(worker), name, str(tmp_path)],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        outputs = [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert not any(process.returncode for process in processes), "\n".join(outputs)[-6000:]
    first, second = (torch.load(tmp_path / f"{name}-{rank}.pt") for rank in (0, 1))
    assert torch.equal(first["weights"], second["weights"]) and first["visits"] == second["visits"]
    assert first["visits"] > 5
