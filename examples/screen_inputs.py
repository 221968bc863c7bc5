"""
Which of 2,000 inputs matter, with error bars
=============================================

``scgd.screen`` decides for each input of a noisy simulator whether it matters, at a stated
false-discovery rate, with a confidence interval for its effect. Twelve of 2,000 matter here: six
are slopes, four are bends, and two only act together. Needs ``pip install matplotlib`` and writes
screen_inputs.svg.
"""

import matplotlib.pyplot as plt
import numpy as np

import scgd

INPUTS, RUNS, NOISE = 2000, 1000, 0.5
rng = np.random.default_rng(7)
matter = np.sort(rng.choice(INPUTS, 12, replace=False))
slopes = np.array([2.0, -1.6, 1.3, -1.0, 0.8, -0.6])
bends = np.array([2.0, -1.5, 1.0, 0.7])
LEVELS = np.linspace(-1, 1, 4)  # the levels at which screen tries an input


def simulator(x):
    z = x[matter]
    clean = slopes @ z[:6] + bends @ z[6:10] ** 2 + 1.5 * z[10] * z[11]
    return float(clean) + NOISE * rng.standard_normal()


def main():
    found = scgd.screen(simulator, [(-1, 1)] * INPUTS, max_evals=RUNS, seed=0)
    print(found)
    said = np.flatnonzero(found.decisions == "matters")
    right = len(set(said) & set(matter))
    print(f"{right} of the 12 that matter, and {len(said) - right} of the 1,988 others")
    picture(found, said, right)


def rows(found, said):
    """Return name, effect, limits and truth of what was found, the largest effect first."""
    true = {k: abs(s) * np.std(LEVELS) for k, s in zip(matter[:6], slopes, strict=True)}
    true |= {k: abs(b) * np.std(LEVELS**2) for k, b in zip(matter[6:10], bends, strict=True)}
    for k in said:
        if found.low[k] > 0:  # by itself
            limits = found.low[k], found.high[k]
            yield f"{k}", found.sizes[k], *limits, true.get(k, 0.0)
    pair = tuple(f"x[{k}]" for k in matter[10:])
    for one in found.interactions:
        words = "×".join(name[2:-1] for name in one["inputs"])
        size, band = one["size"], 2 * one["error"]
        truth = 1.5 * np.var(LEVELS) if one["inputs"] == pair else 0.0
        yield words, size, size - band, size + band, truth


def picture(found, said, right):
    """Draw effects with their intervals, and the true ones."""
    plt.style.use("scgd.plots.slide")
    table = sorted(rows(found, said), key=lambda row: -row[1])
    names, size, low, high, true = (np.array(column) for column in zip(*table, strict=True))
    figure, ax = plt.subplots()
    places, others = np.arange(len(size)), np.setdiff1d(np.arange(INPUTS), said)
    ax.vlines(places, low, high, color="#0b8f8a", lw=4)
    ax.plot(places, size, "o", ms=11, color="#0b8f8a")
    ax.hlines(true, places - 0.3, places + 0.3, color="#e0701a", lw=3)
    ax.vlines(len(size), 0, found.sizes[others].max(), color="#858d97", lw=6)
    ax.annotate("truth", (0.35, true[0]), color="#e0701a", va="center")
    ax.annotate("estimate, 95 % interval", (1.15, size[1]), color="#0b8f8a", va="bottom")
    words = [*names, f"{len(others):,} others"]
    ax.set_xticks(range(len(words)), words, rotation=35, ha="right", rotation_mode="anchor")
    ax.set_ylim(0, None)
    ax.set_ylabel("effect")
    for i in np.flatnonzero(true == 0):
        ax.annotate("false alarm", (i - 0.3, high[i] + 0.03), color="#e0701a")
    title = f"{right} of 12 inputs found among 2,000 in {found.nfev:,} noisy runs"
    figure.suptitle(title, x=0.02, ha="left")
    figure.savefig("screen_inputs.svg")


if __name__ == "__main__":
    main()
