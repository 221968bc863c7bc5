"""
Black boxes, a tutorial
=======================

A simulator of a chemical plant has 60 dials. Nobody knows its formula; a run returns the cost of a
day, and every day is different. We look for good settings with ``scgd.minimize``.
"""

import numpy as np
from plotly.subplots import make_subplots

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
print(f"cost {result.fun:.4f} (+- {result.fun_error:.4f}) after {result.nfev} days")

# %%
# Without ``sample`` the noise is nobody's to control. ``auto`` notices; the same budget buys less.

weathers = np.random.default_rng(5)
alone = scgd.minimize(
    lambda x: plant(x, weathers.uniform(0, 2 * np.pi)), np.zeros(DIALS), max_evals=12_000, seed=3
)
print(f"cost {alone.fun:.4f} (+- {alone.fun_error:.4f}) after {alone.nfev} days")

# %%
# Which dials matter? ``weights`` is the sampling law learned. The descent and the law:

figure = make_subplots(1, 2, subplot_titles=("cost of a day", "sampling law learned"))
figure.add_scatter(x=result.history["nfev"], y=result.history["fun"], row=1, col=1)
figure.add_bar(y=result.weights, row=1, col=2)
figure.update_yaxes(type="log", row=1, col=1)
figure.update_layout(template="plotly_white", showlegend=False, height=360)
figure.write_html("black_box.html", config={"displayModeBar": False})

# %%
# A long run is kept in a file and goes on after a kill, bit for bit: ``checkpoint="plant.npz"``. It
# is spread over processes or a cluster by ``workers=8`` or ``workers=client``, along the same
# trajectory.
