"""TuRBO-1: Bayesian optimisation in a trust region (Eriksson et al., 2019), with BoTorch."""

from __future__ import annotations

import warnings

import numpy as np

from scgd.typing import Floats
from scgd_arena.oracle import Oracle, Spent

__all__ = ["turbo"]


def turbo(oracle: Oracle, seed: int, batch: int = 4) -> Floats:
    """Run TuRBO-1: Thompson samples in a box that grows on success and shrinks on failure.

    As published: 2 p first points (half the budget at most), candidates that change 20 coordinates
    each (at most 1,000; the authors draw 5,000, at 25 times the cost), a side of 0.8 at first,
    doubled after 3 successes, halved after p / ``batch`` failures, begun anew below 2^-7. The first
    point is x0.
    """
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.generation.sampling import MaxPosteriorSampling
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    low, high = oracle.task.box
    rng, p = np.random.default_rng([seed, 35]), low.size
    first = min(2 * p, oracle.budget // 2)
    patience = max(4, int(np.ceil(p / batch)))
    answer, lowest, points = oracle.task.x0, np.inf, [(oracle.task.x0 - low) / (high - low)]
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        try:
            while True:
                length, wins, losses = 0.8, 0, 0
                points += list(rng.uniform(0, 1, (first - len(points), p)))
                places, values = np.array(points), [oracle(low + z * (high - low)) for z in points]
                while length >= 0.5**7:
                    levels = np.array(values)
                    kept = levels.min()
                    levels = (levels - levels.mean()) / (levels.std() or 1.0)
                    model = SingleTaskGP(torch.tensor(places), -torch.tensor(levels)[:, None])
                    fit_gpytorch_mll(
                        ExactMarginalLogLikelihood(model.likelihood, model),
                        optimizer_kwargs={"options": {"maxiter": 50}},
                    )
                    scales = model.covar_module.lengthscale.detach().numpy().ravel()
                    sides = length * scales / np.exp(np.mean(np.log(scales)))
                    centre = places[levels.argmin()]
                    box = [np.clip(centre + s * sides / 2, 0, 1) for s in (-1, 1)]
                    n = min(1000, 200 * p)
                    moved = rng.random((n, p)) < min(1.0, 20 / p)
                    moved[np.arange(n), rng.integers(p, size=n)] = True
                    tried = np.where(moved, rng.uniform(box[0], box[1], (n, p)), centre)
                    with torch.no_grad():
                        pick = MaxPosteriorSampling(model, replacement=False)
                        chosen = pick(torch.tensor(tried), num_samples=batch).numpy()
                    places = np.vstack([places, chosen])
                    values += [oracle(low + z * (high - low)) for z in chosen]
                    won = min(values[-batch:]) < kept - 1e-3 * abs(kept)
                    wins, losses = (wins + 1, 0) if won else (0, losses + 1)
                    if wins == 3:
                        length, wins = min(1.6, 2 * length), 0
                    if losses == patience:
                        length, losses = length / 2, 0
                    if min(values) < lowest:
                        lowest, answer = min(values), low + places[np.argmin(values)] * (high - low)
                points = []
        except Spent:
            return oracle.answer(answer)
