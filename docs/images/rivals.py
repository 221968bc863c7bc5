"""The picture of the first page: ``python docs/images/rivals.py`` (pycma and Optuna; minutes).

scgd, pycma, Optuna and SciPy on the simulator of the README at equal evaluations, three seeds each.
Every method recommends a point after so many evaluations; its true cost above the best one counts.
``rivals.csv`` keeps the rows, and ``--draw`` draws them again without running anything.
"""

import csv
import sys
from pathlib import Path

import numpy as np

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


METHODS = {
    "scgd": ours, "pycma, separable": separable, "pycma": pycma, "SciPy Powell": powell,
    "SciPy DE": differential_evolution, "Optuna TPE": optuna_tpe,
}  # fmt: skip


def run():
    """Write the rows."""
    with (HERE / "rivals.csv").open("w") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("method", "evaluations", "seed", "gap"))
        for name, method in METHODS.items():
            for n in BUDGETS:
                for seed in SEEDS:
                    x = method(n, seed)
                    if x is not None:
                        out.writerow((name, n, seed, f"{gap(x):.3g}"))
                        file.flush()


def medians():
    """Return the median gaps by method: evaluations and gaps."""
    with (HERE / "rivals.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = {}
    for name in METHODS:
        mine = [row for row in rows if row["method"] == name]
        at = {n: [float(r["gap"]) for r in mine if int(r["evaluations"]) == n] for n in BUDGETS}
        found[name] = {n: float(np.median(gaps)) for n, gaps in at.items() if gaps}
    return found


OURS, GREYS, LINE = "#2563eb", ("#475569", "#64748b", "#7a8594", "#94a3b8", "#94a3b8"), "#7a8594"
LEFT, RIGHT, TOP, BOTTOM = 130, 860, 90, 500


def draw():
    """Write the picture."""
    found = medians()
    low = int(np.floor(np.log10(min(min(gaps.values()) for gaps in found.values()))))
    high = 1

    def place(n, value):
        across = np.log(n / BUDGETS[0]) / np.log(BUDGETS[-1] / BUDGETS[0])
        down = (high - np.log10(value)) / (high - low)
        return LEFT + across * (RIGHT - LEFT), TOP + down * (BOTTOM - TOP)

    def words(x, y, text, size=26, fill=LINE, anchor="start", more=""):
        return (
            f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{fill}" '
            f'text-anchor="{anchor}"{more}>{text}</text>'
        )

    title = "5 of 200 inputs matter: scgd is lowest at every budget"
    parts = [words(20, 42, title, 32, more=' font-weight="600"')]
    for power in range(low, high + 1):
        _, y = place(BUDGETS[0], 10.0**power)
        parts.append(f'<path d="M{LEFT} {y:.0f}H{RIGHT}" stroke="{LINE}" stroke-opacity="0.3"/>')
        label = f"{10.0**power:g}" if power > -5 else f"1e{power}"
        parts.append(words(LEFT - 12, y + 9, label, anchor="end"))
    for n in BUDGETS:
        parts.append(words(place(n, 1)[0], BOTTOM + 38, f"{n:,}", anchor="middle"))
    parts.append(words((LEFT + RIGHT) / 2, BOTTOM + 80, "evaluations", anchor="middle"))
    parts.append(words(20, TOP - 20, "cost above the best, noise of 0.1"))
    ends = []
    for name, grey in zip(reversed(METHODS), (*GREYS, OURS), strict=True):
        gaps = found[name]
        points = [place(n, value) for n, value in gaps.items()]
        path = "L".join(f"{x:.0f} {y:.0f}" for x, y in points)
        if len(points) == 1:  # too slow for more
            (x, y), name = points[0], f"{name}, 200 only"
            parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="8" fill="{grey}"/>')
            parts.append(words(x + 16, y - 8, name, 24, grey))
            continue
        width = 7 if name == "scgd" else 4
        parts.append(
            f'<path d="M{path}" fill="none" stroke="{grey}" stroke-width="{width}" '
            'stroke-linejoin="round"/>'
        )
        ends.append([points[-1][1], points[-1][0], name, grey])
    ends.sort()
    for i in range(1, len(ends)):  # labels that would overlap move down
        ends[i][0] = max(ends[i][0], ends[i - 1][0] + 32)
    for y, x, name, grey in ends:
        bold = ' font-weight="600"' if name == "scgd" else ""
        parts.append(words(x + 16, y + 9, name, 28, grey, more=bold))
    body = "\n".join(parts)
    (HERE / "rivals.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 600" role="img" '
        f'aria-label="{title}" font-family="system-ui, sans-serif">\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    if "--draw" not in sys.argv:
        run()
    draw()
