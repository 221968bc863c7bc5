"""
Black boxes, a tutorial
=======================

A simulator of a chemical plant has 60 dials. Nobody knows its formula; a run returns the cost of a
day, and every day is different. We look for good settings with ``scgd.minimize``.
"""

import matplotlib.pyplot as plt
import numpy as np

import scgd

DIALS = 60
rng = np.random.default_rng(0)
best = rng.uniform(-1, 1, DIALS)
matters = np.where(np.arange(DIALS) < 8, 1.0, 0.01)  # eight dials carry nearly all of the cost


def plant(x, weather):
    """Return the cost of a day: how far the dials are off, more so on some days than on others."""
    return float(np.sum(matters * (1 + 0.5 * np.sin(weather + np.arange(DIALS))) * (x - best) ** 2))


# %%
# The weather is a random number that the simulator takes as an argument, so it can be held fixed.
# ``sample`` makes one from a generator; all evaluations of a step see the same one.

result = scgd.minimize(
    plant, np.zeros(DIALS), sample=lambda rng: rng.uniform(0, 2 * np.pi), max_evals=12_000, seed=3
)
print(result.message)
print(f"cost {result.fun:.1e} (+- {result.fun_error:.1e}) after {result.nfev} days")

# %%
# If you cannot repeat the weather, leave ``sample`` out. ``auto`` notices the noise. The value is
# then a mean of fresh evaluations, and its error says how sure it is.

weathers = np.random.default_rng(5)
alone = scgd.minimize(
    lambda x: plant(x, weathers.uniform(0, 2 * np.pi)), np.zeros(DIALS), max_evals=12_000, seed=3
)
print(f"cost {alone.fun:.1e} (+- {alone.fun_error:.1e}) after {alone.nfev} days")

# %%
# Which dials matter? ``relevance`` is the share of each in the changes of the cost.

plt.style.use("scgd.plots.slide")
figure, ax = plt.subplots()
ax.bar(
    range(1, DIALS + 1), 100 * alone.relevance, color=["#0b8f8a"] * 8 + ["#858d97"] * (DIALS - 8)
)
ax.set_xlabel("dial")
ax.set_ylabel("relevance, %")
share = 100 * alone.relevance[:8].sum()
figure.suptitle(f"8 of 60 dials make {share:.0f} % of the difference", x=0.02, ha="left")
figure.savefig("black_box.svg")

# %%
# A long run is kept in a file and goes on after a kill, bit for bit: ``checkpoint="plant.npz"``. It
# is spread over processes or a cluster by ``workers=8`` or ``workers=client``, along the same
# trajectory.
