"""The picture of the first page: ``python docs/images/rivals.py`` (pycma and Optuna; minutes).

scgd, pycma, Optuna and SciPy on the simulator of the README at equal evaluations, three seeds each.
Every method recommends a point after so many evaluations; its true cost above the best one counts.
``rivals.csv`` keeps the rows: names of methods as arguments run those alone, ``--draw`` none.
"""

import csv
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from scgd.plots.data import OURS

sys.path.insert(0, str(Path(__file__).parent.parent))
from pictures import adaptive

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


def medians():
    """Return the median gaps by method: evaluations and gaps."""
    rows, found = stored(), {}
    for name in METHODS:
        mine = [row for row in rows if row["method"] == name]
        at = {n: [float(r["gap"]) for r in mine if int(r["evaluations"]) == n] for n in BUDGETS}
        found[name] = {n: float(np.median(gaps)) for n, gaps in at.items() if gaps}
    return found


def draw():
    """Write the picture."""
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    found = medians()
    place, room = np.inf, 2.8  # names keep their distance
    for name, gaps in sorted(found.items(), key=lambda pair: -list(pair[1].values())[-1]):
        ours = name == "scgd"
        style = {"color": OURS if ours else "#858d97", "lw": 6 if ours else 3, "ms": 11}
        ax.loglog(list(gaps), list(gaps.values()), "o-", **style)
        n, value = list(gaps.items())[-1]
        if len(gaps) == 1:  # half a second per trial, and more as they become more
            ax.plot(n, value, "o", color="#e0701a", ms=13)
            ax.text(n * 1.05, 0.65, f"{name}: {n} only", color="#e0701a", fontsize=20)
            continue
        place = min(place / room, value if place < np.inf else value * room)
        ax.text(n * 1.07, place, name, color=style["color"], va="center", fontsize=20)
    ax.set_xticks(BUDGETS, [f"{n:,}" for n in BUDGETS])
    ax.minorticks_off()
    ax.set_xlabel("noisy evaluations, 5 of 200 inputs matter")
    ax.set_ylabel("cost above the best")
    lowest = all(
        gaps[n] > found["scgd"][n] for name, gaps in found.items() if name != "scgd" for n in gaps
    )
    if not lowest:
        raise SystemExit("a rival is lower: the title of the picture is wrong")
    figure.suptitle("5 of 200 inputs matter: scgd is lowest throughout", x=0.02, ha="left")
    place = HERE / "rivals.svg"
    figure.savefig(place, metadata={"Date": None})
    place.write_text(adaptive(place.read_text()))


if __name__ == "__main__":
    named = [name for name in sys.argv[1:] if name in METHODS]
    if "--draw" not in sys.argv:
        run(named or list(METHODS))
    draw()
