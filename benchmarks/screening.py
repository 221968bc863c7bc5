"""Which inputs matter: scgd.screen and its rivals on 12 problems whose truth is known.

    python benchmarks/screening.py rows [--seeds 100-105] [--problems 1,2] [--out FILE]
    python benchmarks/screening.py simulate [--seeds 200-299]
    python benchmarks/screening.py table

``rows`` appends a row per problem, seed and method to screening.csv (rows that are there are kept).
A row has the recall at 10 % false discoveries: inputs are ranked by the method's scores, and the
longest beginning of that ranking with at most 10 % false ones counts. That is generous to all: only
the truth tells where to stop. For scgd.screen the recall and the false part of its own decisions
stand beside it. ``simulate`` looks at coverage and false discoveries over many seeds. ``table`` writes both tables into docs/screening.md.

Rivals, at equal evaluations: SALib's Morris (in groups where the budget does not pay for one
trajectory), SALib's Sobol total indices, sequential bifurcation with mirrored observations
(Bettonvil and Kleijnen 1997), and the importances of scikit-learn's extra-trees.
"""

from __future__ import annotations

import argparse
import csv
import heapq
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import scgd

HERE = Path(__file__).parent
ROWS, SIMULATED = HERE / "screening.csv", HERE / "screening_simulated.csv"
FIELDS = (
    "problem", "p", "active", "evals", "noise", "seed", "method",
    "recall", "found", "false_part", "missed_said_not", "seconds",
)  # fmt: skip
FALSE = 0.1


# ---- problems ------------------------------------------------------------------------------------


class Problem:
    """A function on the cube [0, 1]^p, of which a few inputs matter.

    ``noise`` is relative to the standard deviation of the function over the cube.
    """

    name, p, n_active, evals, noise = "", 0, 0, 0, 0.0

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, self.p, self.evals])
        self.active = np.sort(self.rng.choice(self.p, self.n_active, replace=False))
        self.make(self.rng)
        points = self.rng.random((2000, self.n_active))
        self.unit = float(np.std([self.exact(z) for z in points]))
        self.level = self.noise * self.unit
        self.count = 0

    def make(self, rng: np.random.Generator) -> None:
        """Draw what distinguishes one instance from another."""

    def exact(self, z: np.ndarray) -> float:
        """Return the value at some active inputs."""
        raise NotImplementedError

    def __call__(self, x: np.ndarray) -> float:
        """Return a noisy value."""
        self.count += 1
        return self.exact(x[self.active]) + self.level * self.rng.standard_normal()


def sizes(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return effects of random sign, of which the largest is about ten times the smallest."""
    return rng.choice([-1.0, 1.0], n) * 10 ** rng.uniform(-1, 0, n)


class Linear(Problem):
    name, p, n_active, evals, noise = "linear", 20, 8, 100, 0.5

    def make(self, rng):
        self.w = sizes(rng, self.n_active)

    def exact(self, z):
        return float(self.w @ z)


class Curved(Linear):
    name, p, n_active, evals, noise = "curved", 50, 8, 200, 0.5

    def exact(self, z):
        u = 2 * z - 1
        return float(self.w[:4] @ u[:4] + self.w[4:] @ (u[4:] + 1.5 * u[4:] ** 2))


class Symmetric(Linear):
    name, p, n_active, evals, noise = "symmetric", 100, 10, 400, 0.5

    def exact(self, z):
        return float(self.w @ (2 * z - 1) ** 2)


class Products(Linear):
    name, p, n_active, evals, noise = "products", 50, 8, 400, 0.25

    def exact(self, z):
        u = 2 * z - 1
        return float(self.w[:4] @ u[:4] + 2 * (self.w[4] * u[4] * u[5] + self.w[6] * u[6] * u[7]))


class Steps(Linear):
    name, p, n_active, evals, noise = "steps", 200, 12, 500, 0.5

    def make(self, rng):
        super().make(rng)
        self.at = rng.uniform(0.2, 0.8, self.n_active)

    def exact(self, z):
        return float(self.w @ (z > self.at))


class Morris(Problem):
    """Morris (1991): 20 inputs of which ten matter clearly; all terms beyond those are left out."""

    name, p, n_active, evals, noise = "Morris 1991", 40, 10, 300, 0.5

    def make(self, rng):
        self.first = np.r_[np.full(10, 20.0)] * rng.choice([-1, 1], 10)
        second = np.triu(np.full((10, 10), 0.0), 1)
        second[:6, :6] = np.triu(np.full((6, 6), -15.0), 1)
        self.second = second

    def exact(self, z):
        w = 2 * (z - 0.5)
        for k in (2, 4, 6):
            w[k] = 2 * (1.1 * z[k] / (z[k] + 0.1) - 0.5)
        third = sum(
            -10 * w[i] * w[j] * w[k] for i in range(5) for j in range(i + 1, 5)
            for k in range(j + 1, 5)
        )  # fmt: skip
        return float(self.first @ w + w @ self.second @ w + third)


class GFunction(Problem):
    """Sobol's g function: a product, symmetric in every input."""

    name, p, n_active, evals, noise = "Sobol g", 200, 8, 600, 0.25

    def make(self, rng):
        self.a = np.array([0.0, 0.5, 1.0, 1.0, 2.0, 2.0, 4.5, 4.5])

    def exact(self, z):
        return float(np.prod((np.abs(4 * z - 2) + self.a) / (1 + self.a)))


class Sparse(Linear):
    name, p, n_active, evals, noise = "sparse", 500, 15, 800, 1.0

    def make(self, rng):
        self.w = rng.standard_normal(self.n_active)


class Clustered(Problem):
    """Neighbouring inputs have effects of like size and sign."""

    name, p, n_active, evals, noise = "clustered", 1000, 24, 1000, 1.0

    def make(self, rng):
        starts = rng.choice(self.p // 8 - 1, 3, replace=False) * 8
        self.active = np.sort(np.concatenate([s + np.arange(8) for s in starts]))
        self.w = np.repeat(rng.choice([-1.0, 1.0], 3), 8) * np.tile(0.8 ** np.arange(8), 3)

    def exact(self, z):
        return float(self.w @ z)


class Wide(Linear):
    name, p, n_active, evals, noise = "wide", 2000, 15, 1200, 0.1

    def exact(self, z):
        u = 2 * z - 1
        return float(
            self.w[:9] @ u[:9] + self.w[9:11] @ u[9:11] ** 2
            + 2 * self.w[11:13] @ (u[11:13] * u[13:15]) + 2 * self.w[13:] @ (u[:2] * u[2:4])
        )  # fmt: skip


class Deep(Linear):
    name, p, n_active, evals, noise = "exact", 5000, 20, 1000, 0.0

    def exact(self, z):
        u = 2 * z - 1
        return float(
            self.w[:12] @ u[:12] + self.w[12:16] @ (z[12:16] > 0.6) + 2 * u[0] * u[16]
            + 2 * u[17] * u[18] + np.exp(u[19] * u[1])
        )  # fmt: skip


class Friedman(Problem):
    """Friedman (1991), among thousands of inputs that do nothing."""

    name, p, n_active, evals, noise = "Friedman 1991", 5000, 5, 600, 0.25

    def exact(self, z):
        return float(
            10 * np.sin(np.pi * z[0] * z[1]) + 20 * (z[2] - 0.5) ** 2 + 10 * z[3] + 5 * z[4]
        )


PROBLEMS = (
    Linear, Curved, Symmetric, Products, Steps, Morris, GFunction, Sparse, Clustered, Wide, Deep,
    Friedman,
)  # fmt: skip


# ---- simulation of coverage and false discoveries ------------------------------------------------


class Simulated(Problem):
    """Six of p inputs: lines, a curve and a product; or none of them."""

    tails, confidence = "normal", 0.95

    def exact(self, z):
        if not self.n_active:
            return 0.0
        u = 2 * z - 1
        return float(2 * u[0] - u[1] + 0.5 * u[2] + 0.2 * u[3] + u[4] ** 2 + u[4] * u[5])

    def __call__(self, x):
        self.count += 1
        e = self.rng.standard_normal()
        if self.tails == "t3":
            e = self.rng.standard_t(3) / np.sqrt(3)
        return self.exact(x[self.active]) + self.level * e

    def truth(self) -> np.ndarray:
        """Return the sizes of all inputs: standard deviations of main effects over the levels."""
        found = np.zeros(self.p)
        for i, k in enumerate(self.active):  # products are of centred inputs: none at the middle
            points = np.full((4, self.n_active), 0.5)
            points[:, i] = np.linspace(0, 1, 4)
            found[k] = np.std([self.exact(z) for z in points])
        return found


class Dense(Simulated):
    """Inputs of like size: lines, or curves whose neighbours interact."""

    bend = 0.0

    def exact(self, z):
        u = 2 * z - 1
        return float(np.sum(u + self.bend * (u + u**2)) + self.bend * (u[:-1] @ u[1:]))


def simulated(name, p, active, evals, noise, kind=Simulated, **more):
    """Return a class of instances."""
    fields = {"name": name, "p": p, "n_active": active, "evals": evals, "noise": noise}
    return type("Case", (kind,), {**fields, **more})


CASES = (
    simulated("little noise", 60, 6, 300, 0.25),
    simulated("noise as large as the signal", 60, 6, 300, 1.0),
    simulated("few evaluations", 60, 6, 80, 0.5),
    simulated("many inputs", 1000, 6, 600, 1.0),
    simulated("heavy tails (t with 3 degrees)", 60, 6, 300, 1.0, tails="t3"),
    simulated("nothing but noise", 200, 0, 300, 1.0),
    simulated("nothing but noise, heavy tails", 200, 0, 300, 1.0, tails="t3"),
    simulated("few evaluations, exact", 60, 6, 80, 0.0),
    simulated("many inputs, few evaluations, exact", 1000, 6, 250, 0.0),
    simulated("level 0.8, little noise", 60, 6, 150, 0.1, confidence=0.8),
    simulated("5 lines, 40 evaluations, exact", 5, 5, 40, 0.0, Dense),
    simulated("5 lines, 40 evaluations, exact, level 0.8", 5, 5, 40, 0.0, Dense, confidence=0.8),
    simulated("20 lines, 60 evaluations, exact", 20, 20, 60, 0.0, Dense),
    simulated("20 lines, 200 evaluations, exact", 20, 20, 200, 0.0, Dense),
    simulated("20 lines, 200 evaluations, noise 0.1", 20, 20, 200, 0.1, Dense),
    simulated("20 lines, 200 evaluations, noise 1", 20, 20, 200, 1.0, Dense),
    simulated("200 lines, 400 evaluations, exact", 200, 200, 400, 0.0, Dense),
    simulated("6 curves that interact, exact", 20, 6, 120, 0.0, Dense, bend=0.6),
    simulated("6 curves that interact, noise 0.1", 20, 6, 120, 0.1, Dense, bend=0.6),
    simulated("20 curves that interact, noise 0.1", 20, 20, 300, 0.1, Dense, bend=0.6),
)
SIMULATED_FIELDS = (
    "case", "seed", "covered_active", "covered", "discoveries", "false_part", "missed",
    "said_not", "false_not",
)  # fmt: skip


def simulate(args: argparse.Namespace) -> None:
    """Add rows on intervals and decisions, each of an instance with noise of its own."""
    path = Path(args.out)
    done = {(r["case"], r["seed"]) for r in stored(path)}
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, SIMULATED_FIELDS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        for make in CASES:
            for seed in seeds_of(args.seeds):
                if (make.name, str(seed)) in done:
                    continue
                problem = make(seed)
                if not make.n_active:
                    problem.level = 1.0
                bounds = [(0.0, 1.0)] * problem.p
                found = scgd.screen(
                    problem, bounds, max_evals=make.evals, level=make.confidence, seed=seed
                )
                truth, tiny = problem.truth() if make.n_active else np.zeros(problem.p), 1e-9
                inside = (found.low <= truth + tiny) & (truth - tiny <= found.high)
                said = np.flatnonzero(found.decisions == "matters")
                wrong = len(set(said) - set(problem.active))
                said_not = np.flatnonzero(found.decisions == "does not")
                big = np.flatnonzero(truth > found.threshold)
                row = {
                    "case": make.name, "seed": seed, "covered": inside.mean(),
                    "covered_active": inside[problem.active].mean() if make.n_active else "",
                    "discoveries": len(said), "false_part": wrong / max(len(said), 1),
                    "missed": len(set(problem.active) - set(said)), "said_not": len(said_not),
                    "false_not": len(set(said_not) & set(big)) / max(len(said_not), 1),
                }  # fmt: skip
                writer.writerow(
                    {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
                )
                file.flush()


def simulated_table(rows: list[dict[str, str]]) -> str:
    """Return the table of the page: coverage and false discoveries."""
    heads = ("case", "runs", "intervals that cover, inputs that matter", "all inputs",
             "false part of the discoveries", "of those said not to matter")  # fmt: skip
    lines = [f"|{'|'.join(heads)}|", "|" + "---|" * len(heads)]
    for make in CASES:
        mine = [r for r in rows if r["case"] == make.name]
        if not mine:
            continue

        def average(field: str, rows: list[dict[str, str]] = mine) -> str:
            values = [float(r[field]) for r in rows if r[field] != ""]
            return f"{np.mean(values):.3f}" if values else "-"

        fields = ("covered_active", "covered", "false_part", "false_not")
        lines.append(f"|{make.name}|{len(mine)}|" + "|".join(map(average, fields)) + "|")
    return "\n".join(lines)


# ---- methods: scores, the larger the more an input matters ---------------------------------------


def ours(problem: Problem, seed: int):
    """Return scores of scgd.screen and its result."""
    bounds = [(0.0, 1.0)] * problem.p
    noise = 0.0 if problem.noise == 0 else None
    found = scgd.screen(problem, bounds, max_evals=problem.evals, noise=noise, seed=seed)
    return -found.p_values + 1e-9 * (found.sizes > 0) * found.sizes / max(
        found.sizes.max(), 1e-300
    ), found


def morris(problem: Problem, seed: int):
    """Return mu* of SALib's Morris; in random groups where one trajectory is too dear."""
    from SALib.analyze import morris as analysis
    from SALib.sample import morris as sampling

    p, n = problem.p, problem.evals
    rng = np.random.default_rng(seed)
    spec: dict = {"num_vars": p, "names": [f"x{k}" for k in range(p)], "bounds": [[0.0, 1.0]] * p}
    n_groups = p
    if n // (p + 1) < 2:  # two trajectories at least, each of groups + 1 evaluations
        n_groups = n // 2 - 1
        group = rng.permutation(np.arange(p) % n_groups)
        spec["groups"] = [f"g{g:05d}" for g in group]
    trajectories = n // (n_groups + 1)
    x = sampling.sample(spec, trajectories, num_levels=4, seed=seed)
    y = np.array([problem(row) for row in x])
    found = analysis.analyze(spec, x, y, num_levels=4, num_resamples=2)
    if n_groups == p:
        return np.asarray(found["mu_star"], float)
    by_name = dict(zip(found["names"], np.asarray(found["mu_star"], float), strict=True))
    return np.array([by_name[g] for g in spec["groups"]]) + 1e-9 * rng.random(p)


def sobol(problem: Problem, seed: int):
    """Return total indices of SALib's Sobol (Saltelli's design of n (p + 2) evaluations)."""
    from SALib.analyze import sobol as analysis
    from SALib.sample import sobol as sampling

    p = problem.p
    n = problem.evals // (p + 2)
    if n < 2:
        return None
    n = 2 ** int(np.log2(n))
    spec = {"num_vars": p, "names": [f"x{k}" for k in range(p)], "bounds": [[0.0, 1.0]] * p}
    x = sampling.sample(spec, n, calc_second_order=False, seed=seed)
    y = np.array([problem(row) for row in x])
    found = analysis.analyze(spec, y, calc_second_order=False, num_resamples=2, seed=seed)
    return np.nan_to_num(np.asarray(found["ST"], float))


def bifurcation(problem: Problem, seed: int):
    """Return effects by sequential bifurcation, the largest group being split first.

    Mirrored observations take quadratic effects out; groups with effects of both signs cancel.
    """
    p, rng = problem.p, np.random.default_rng(seed)
    order = rng.permutation(p)
    repeats = 1 if problem.noise == 0 else 2

    def value(j: int) -> float:
        """Half the difference of the first j inputs high, the others low, and its mirror image."""
        high = np.zeros(p)
        high[order[:j]] = 1.0
        return float(np.mean([(problem(high) - problem(1.0 - high)) / 2 for _ in range(repeats)]))

    cost, scores = 2 * repeats, np.zeros(p)
    known = {0: value(0), p: value(p)}
    queue = [(-abs(known[p] - known[0]) / 2, 0, p)]
    while queue and problem.count + cost <= problem.evals:
        size, a, b = heapq.heappop(queue)
        if b - a == 1:
            scores[order[a]] = 1e6 - size
            continue
        middle = (a + b) // 2
        known[middle] = value(middle)
        for c, d in ((a, middle), (middle, b)):
            heapq.heappush(queue, (-abs(known[d] - known[c]) / 2, c, d))
    for size, a, b in queue:  # what was not split shares its effect
        inside = order[a:b]
        scores[inside] = (1e6 if b - a == 1 else 0.0) - size / (b - a) + 1e-9 * rng.random(b - a)
    return scores


def trees(problem: Problem, seed: int):
    """Return importances of extra-trees fitted to a random design."""
    from sklearn.ensemble import ExtraTreesRegressor

    x = np.random.default_rng(seed).random((problem.evals, problem.p))
    y = np.array([problem(row) for row in x])
    features = 1.0 if problem.p <= 100 else 0.33  # the common choice, and what one can afford
    model = ExtraTreesRegressor(100, max_features=features, random_state=seed, n_jobs=1)
    return model.fit(x, y).feature_importances_


RIVALS = {
    "Morris": morris, "Sobol": sobol, "bifurcation": bifurcation, "extra-trees": trees,
}  # fmt: skip
NAMES = ("scgd.screen", *RIVALS)


# ---- figures -------------------------------------------------------------------------------------


def recall_at(scores: np.ndarray | None, active: np.ndarray, false: float = FALSE) -> float:
    """Return the recall of the longest beginning of a ranking with so many false ones at most."""
    if scores is None:
        return 0.0
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum(np.isin(order, active))
    wrong = np.arange(1, len(order) + 1) - right
    allowed = wrong <= false * np.arange(1, len(order) + 1)
    return float(right[allowed].max(initial=0) / len(active))


def one_row(make, seed: int, method: str) -> dict[str, object]:
    """Run a method on an instance."""
    problem, began = make(seed), time.perf_counter()
    row: dict[str, object] = {
        "problem": make.name, "p": make.p, "active": len(problem.active), "evals": make.evals,
        "noise": make.noise, "seed": seed, "method": method,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "scgd.screen":
            scores, found = ours(problem, seed)
            said = np.flatnonzero(found.decisions == "matters")
            right = len(set(said) & set(problem.active))
            row["found"] = right / len(problem.active)
            row["false_part"] = (len(said) - right) / max(len(said), 1)
            not_said = np.flatnonzero(found.decisions == "does not")
            row["missed_said_not"] = len(set(not_said) & set(problem.active))
        else:
            scores = RIVALS[method](problem, seed)
    assert problem.count <= make.evals, (make.name, method, problem.count)
    row["recall"] = recall_at(scores, problem.active)
    row["seconds"] = round(time.perf_counter() - began, 2)
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}


def seeds_of(text: str) -> range:
    """Return seeds from a word such as 100-109."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def stored(path: Path) -> list[dict[str, str]]:
    """Return rows of a file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add_rows(args: argparse.Namespace) -> None:
    """Add the rows that are missing."""
    path = Path(args.out)
    done = {(r["problem"], r["seed"], r["method"]) for r in stored(path)}
    fresh = not path.exists()
    some = (
        PROBLEMS
        if args.problems is None
        else [PROBLEMS[int(i) - 1] for i in args.problems.split(",")]
    )
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        for make in some:
            for seed in seeds_of(args.seeds):
                for method in args.methods.split(",") if args.methods else NAMES:
                    if (make.name, str(seed), method) not in done:
                        writer.writerow(one_row(make, seed, method))
                        file.flush()


def mean(rows: list[dict[str, str]], problem: str, method: str, field: str = "recall") -> float:
    """Return the mean of a figure over seeds."""
    values = [float(r[field]) for r in rows if r["problem"] == problem and r["method"] == method]
    return float(np.mean(values)) if values else float("nan")


def table(rows: list[dict[str, str]]) -> str:
    """Return the table of the page: mean recall at 10 % false discoveries."""
    heads = [
        "problem",
        "inputs",
        "matter",
        "evaluations",
        "noise",
        "instances",
        *NAMES,
        "decisions: found",
        "false",
    ]
    lines = [f"|{'|'.join(heads)}|", "|" + "---|" * len(heads)]
    for make in PROBLEMS:
        cells = [mean(rows, make.name, m) for m in NAMES]
        best = max(cells)
        instances = len({r["seed"] for r in rows if r["problem"] == make.name})
        words = [f"**{c:.2f}**" if c == best else f"{c:.2f}" for c in cells]
        own = [mean(rows, make.name, "scgd.screen", f) for f in ("found", "false_part")]
        lines.append(
            f"|{make.name}|{make.p:,}|{make.n_active}|{make.evals:,}|{make.noise:g}|{instances}|"
            + "|".join(words) + f"|{own[0]:.2f}|{own[1]:.2f}|"
        )  # fmt: skip
    return "\n".join(lines)


PAGE = HERE.parent / "docs" / "screening.md"


def on_page(page: str) -> str:
    """Return the page with the tables of the stored rows."""
    made = {
        "screening table": table(stored(ROWS)),
        "simulated table": simulated_table(stored(SIMULATED)),
    }
    for name, text in made.items():
        head, _, rest = page.partition(f"<!-- {name} -->\n")
        _, _, tail = rest.partition("<!-- end -->")
        page = f"{head}<!-- {name} -->\n\n{text}\n\n<!-- end -->{tail}"
    return page


def ahead(rows: list[dict[str, str]]) -> int:
    """Return on how many problems scgd.screen is ahead of all others, ties not counted."""
    return sum(
        mean(rows, make.name, "scgd.screen") > max(mean(rows, make.name, m) for m in RIVALS)
        for make in PROBLEMS
    )


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("command", choices=("rows", "simulate", "table"))
    parser.add_argument("--seeds", default=None)
    parser.add_argument("--problems", default=None)
    parser.add_argument("--methods", default=None)
    parser.add_argument("--out", default=None)
    args = parser.parse_args()
    if args.command == "simulate":
        args.seeds, args.out = args.seeds or "200-299", args.out or str(SIMULATED)
        simulate(args)
        print(simulated_table(stored(Path(args.out))))
        return
    args.out = args.out or str(ROWS)
    if args.command == "rows":
        args.seeds = args.seeds or "100-105"
        add_rows(args)
    if args.command == "table":
        PAGE.write_text(on_page(PAGE.read_text()))
    rows = stored(Path(args.out))
    print(table(rows))
    print(f"ahead of all others on {ahead(rows)} of {len(PROBLEMS)} problems")


if __name__ == "__main__":
    sys.exit(main())
