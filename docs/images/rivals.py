"""The picture of the first page: ``python docs/images/rivals.py`` (pycma and Optuna; minutes).

scgd, pycma, Optuna and SciPy on the simulator of the README at equal evaluations, three seeds each.
Every method recommends a point after so many evaluations; its true cost above the best one counts.
``rivals.csv`` keeps the rows: names of methods as arguments run those alone, ``--draw`` none.
"""

import csv
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import lines

HERE = Path(__file__).parent
INPUTS, SEEDS = 200, (0, 1, 2)
BUDGETS = (200, 500, 1000, 2000, 5000)
MATTER = [12, 57, 110, 171, 190]
BEST = np.array([0.8, -0.6, 0.5, -0.9, 0.7])


def gap(x):
    """Return the true cost of a point above the best one."""
    return float(np.sum((np.asarray(x)[MATTER] - BEST) ** 2))


def simulator(seed):
    """Return the noisy function of the README."""
    rng = np.random.default_rng(seed)
    return lambda x: 2 + gap(x) + 0.1 * rng.standard_normal()


def ours(n, seed):
    import scgd

    return scgd.minimize(simulator(seed), np.zeros(INPUTS), max_evals=n, seed=seed).x


def pycma(n, seed, **options):
    import cma

    options |= {"maxfevals": n, "seed": seed + 1, "verbose": -9, "tolfun": 0, "tolflatfitness": 99}
    es = cma.CMAEvolutionStrategy(np.zeros(INPUTS), 0.3, options)
    f = simulator(seed)
    while not es.stop() and es.countevals + es.popsize <= n:
        points = es.ask()
        es.tell(points, [f(x) for x in points])
    return es.result.xfavorite


def separable(n, seed):
    return pycma(n, seed, CMA_diagonal=True)


def differential_evolution(n, seed):
    from scipy.optimize import differential_evolution

    size = max(1, n // (INPUTS * 5))
    done = differential_evolution(
        simulator(seed), [(-1, 1)] * INPUTS, x0=np.zeros(INPUTS), popsize=size, polish=False,
        maxiter=max(0, n // (size * INPUTS) - 1), rng=seed, tol=0,
    )  # fmt: skip
    return done.x


def powell(n, seed):
    from scipy.optimize import minimize

    done = minimize(
        simulator(seed), np.zeros(INPUTS), method="Powell", options={"maxfev": n, "ftol": 0}
    )
    return done.x


def optuna_tpe(n, seed):
    import optuna

    if n > 200:  # a trial takes half a second with 200 inputs, and more as they become more
        return None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    f = simulator(seed)
    names = [f"x{k}" for k in range(INPUTS)]
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.enqueue_trial(dict.fromkeys(names, 0.0))
    study.optimize(lambda t: f(np.array([t.suggest_float(k, -1, 1) for k in names])), n_trials=n)
    return [study.best_params[k] for k in names]


FIELDS = ("method", "evaluations", "seed", "gap")
METHODS = {
    "scgd": ours, "pycma, separable": separable, "pycma": pycma, "SciPy Powell": powell,
    "SciPy DE": differential_evolution, "Optuna TPE": optuna_tpe,
}  # fmt: skip


def run(names):
    """Write the rows of these methods anew."""
    rows = [row for row in stored() if row["method"] not in names]
    for name in names:
        for n in BUDGETS:
            for seed in SEEDS:
                x = METHODS[name](n, seed)
                if x is not None:
                    values = (name, n, seed, f"{gap(x):.3g}")
                    rows.append(dict(zip(FIELDS, values, strict=True)))
    rows.sort(key=lambda row: list(METHODS).index(row["method"]))
    with (HERE / "rivals.csv").open("w") as file:
        out = csv.DictWriter(file, FIELDS, lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def stored():
    """Return the rows that are kept."""
    with (HERE / "rivals.csv").open() as file:
        return list(csv.DictReader(file))


def draw():
    """Write the picture: medians between the least and the greatest of the seeds."""
    curves = {}
    for name in METHODS:
        mine = [row for row in stored() if row["method"] == name]
        gaps = {n: [float(r["gap"]) for r in mine if int(r["evaluations"]) == n] for n in BUDGETS}
        gaps = {n: values for n, values in gaps.items() if values}
        bands = zip(*(np.quantile(values, (0, 0.5, 1)) for values in gaps.values()), strict=True)
        colour = lines.OURS if name == "scgd" else lines.OTHER
        label = name if len(gaps) > 1 else f"{name}: {max(gaps)} only"  # half a second per trial
        curves[label] = (list(gaps), *map(list, bands), colour)
    title = "5 of 200 inputs matter: scgd is lowest throughout"
    note, unit = "cost above the best, noise 0.1; 3 seeds", "evaluations"
    (HERE / "rivals.svg").write_text(lines.picture(curves, title, note, unit, BUDGETS, log=True))


if __name__ == "__main__":
    named = [name for name in sys.argv[1:] if name in METHODS]
    if "--draw" not in sys.argv:
        run(named or list(METHODS))
    draw()
