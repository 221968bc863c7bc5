"""True value reached after 120 noisy measurements of six settings, by size of batch.

One value of every batch is told with the next one; medians over seeds. The table of docs/laboratory.md.
"""

import numpy as np

import scgd

WEIGHTS = np.array([1, 2, 0.5, 1, 0.2, 3])
BUDGET, SEEDS = 120, 8


def true_value(x):
    return float(np.sum((x - 0.3) ** 2 * WEIGHTS))


def week(n, fail, seed):
    """Return the true value where a laboratory ends that measures n at a time."""
    rng = np.random.default_rng(seed + 100)

    def measure(x):
        if rng.random() < fail:
            return float("nan")
        return true_value(x) + 0.02 * rng.standard_normal()

    opt = scgd.Optimizer(np.full(6, 0.5), bounds=[(0, 1)] * 6, max_evals=BUDGET, seed=seed)
    late = []
    while not opt.done:
        trials = opt.ask(n)
        for trial in late:
            opt.tell(trial.id, measure(trial.x))
        late = trials[1:2] if opt.run.room > n else []
        for trial in trials:
            if all(trial is not other for other in late):
                opt.tell(trial.id, measure(trial.x))
    return true_value(opt.x)


def main():
    for fail in (0.0, 0.1):
        for n in (1, 5, 12):
            reached = [week(n, fail, seed) for seed in range(SEEDS)]
            print(
                f"batches of {n:2d}, {fail:.0%} fail: median {np.median(reached):.3f}, "
                f"worst {max(reached):.3f}"
            )


if __name__ == "__main__":
    main()
