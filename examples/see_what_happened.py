"""
See what happened
=================

Record every evaluation of a run, and see where it went and which inputs mattered.

``print(result)`` tells the run in ten lines, ``result.evaluations`` holds every point and
value, and ``result.plot()`` draws them with sliders and hover texts. Here they make one
picture. Needs ``pip install matplotlib`` and writes see_what_happened.svg.
"""

import matplotlib.pyplot as plt
import numpy as np

import scgd

MATTER = {3: 5.0, 7: 3.0, 11: 2.0, 20: 1.0}
WEIGHTS = np.full(40, 0.001)
WEIGHTS[list(MATTER)] = list(MATTER.values())
rng = np.random.default_rng(0)


def simulator(x):
    """Return a noisy cost; four of its forty inputs carry nearly all of it."""
    return float(WEIGHTS @ (x - 1) ** 2) + 0.1 * rng.standard_normal()


def main():
    result = scgd.minimize(
        simulator, np.zeros(40), max_evals=2000, seed=1, reporting=scgd.Reporting(record=True)
    )
    print(result)
    print(result.evaluations)
    picture(result)


def picture(result):
    """Draw every evaluation, the answer, and the relevance of the inputs."""
    plt.style.use("scgd.plots.slide")
    figure, (left, right) = plt.subplots(1, 2, width_ratios=(3, 2))
    values = result.evaluations.value
    left.plot(np.arange(1, len(values) + 1), values, "o", ms=5, color="#858d97", alpha=0.5, mew=0)
    left.axhline(result.fun, color="#0b8f8a")
    left.text(900, result.fun + 0.5, "the answer", color="#0b8f8a", ha="center")
    left.set_ylim(-0.5, 12)
    left.set_title("every evaluation", color="#5c636b")
    left.xaxis.set_major_formatter("{x:,.0f}")
    left.set_xlabel("evaluations")
    left.set_ylabel("cost")
    top = np.argsort(result.relevance)[-6:]
    right.barh([f"x[{k}]" for k in top], 100 * result.relevance[top], color="#0b8f8a")
    right.grid(axis="x")
    right.grid(visible=False, axis="y")
    right.set_title("relevance, %", color="#5c636b")
    figure.suptitle("What a run saw: 4 of its 40 inputs matter", x=0.02, ha="left")
    figure.savefig("see_what_happened.svg")


if __name__ == "__main__":
    main()
