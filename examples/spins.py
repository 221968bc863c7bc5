"""
The ground state of a spin chain
================================

Tune the 24 angles of a quantum circuit from energies measured with 200 shots each.

The circuit has four layers of rotations on six qubits; the chain is the Ising model in a
transverse field. Every energy is noisy, as on a quantum computer, and no gradient is known.
CMA-ES (pycma) and SciPy's COBYLA get as many energies; with fewer than 1,000 CMA-ES is ahead.
Needs ``pip install matplotlib cma`` and writes spins.svg.
"""

from functools import reduce

import cma
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import scgd

QUBITS, LAYERS, SHOTS = 6, 4, 200
ANGLES, BUDGETS, SEEDS = QUBITS * LAYERS, (1000, 2000, 4000), range(3)
SIGNS = 1 - 2 * ((np.arange(2**QUBITS)[:, None] >> np.arange(QUBITS)[::-1]) & 1)
BONDS, FIELD = np.sum(SIGNS[:, :-1] * SIGNS[:, 1:], axis=1), SIGNS.sum(axis=1)
ENTANGLE = np.prod(np.where((SIGNS[:, :-1] < 0) & (SIGNS[:, 1:] < 0), -1, 1), axis=1)
TURN = reduce(np.kron, [np.array([[1, 1], [1, -1]]) / np.sqrt(2)] * QUBITS)
LOWEST = np.linalg.eigvalsh(-np.diag(BONDS) - TURN @ np.diag(FIELD) @ TURN)[0]


def probabilities(angles):
    """Return the chances of each outcome when all spins are measured along z, and along x."""
    state = np.zeros(2**QUBITS)
    state[0] = 1
    for layer, turns in enumerate(np.reshape(angles, (LAYERS, QUBITS)) / 2):
        state = state.reshape((2,) * QUBITS)
        for qubit, (c, s) in enumerate(zip(np.cos(turns), np.sin(turns), strict=True)):
            turned = np.tensordot([[c, -s], [s, c]], state, axes=(1, qubit))
            state = np.moveaxis(turned, 0, qubit)
        state = state.ravel() * (ENTANGLE if layer < LAYERS - 1 else 1)
    return state**2 / np.sum(state**2), (TURN @ state) ** 2 / np.sum(state**2)


def energy(angles):
    """Return the exact energy above the lowest one, which no method sees."""
    along_z, along_x = probabilities(angles)
    return float(-along_z @ BONDS - along_x @ FIELD - LOWEST)


def measured(rng):
    """Return a function that measures the energy."""

    def shots(angles):
        along_z, along_x = (rng.multinomial(SHOTS, p) / SHOTS for p in probabilities(angles))
        return float(-along_z @ BONDS - along_x @ FIELD)

    return shots


def ours(fun, x0, n, seed):
    return scgd.minimize(fun, x0, max_evals=n, seed=seed).x


def cma_es(fun, x0, n, seed):
    options = {"maxfevals": n, "seed": seed + 1, "verbose": -9, "tolfun": 0, "tolflatfitness": 999}
    return cma.fmin2(fun, x0, 0.3, options)[1].result.xfavorite


def cobyla(fun, x0, n, seed):
    return minimize(fun, x0, method="COBYLA", options={"maxiter": n}).x


def main():
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    for name, method in {"scgd": ours, "CMA-ES": cma_es, "COBYLA": cobyla}.items():
        ends = []
        for n in BUDGETS:
            rngs = [np.random.default_rng(seed) for seed in SEEDS]
            starts = [rng.uniform(-0.3, 0.3, ANGLES) + np.pi / 4 for rng in rngs]
            found = [
                method(measured(rng), x0, n, seed)
                for rng, x0, seed in zip(rngs, starts, SEEDS, strict=True)
            ]
            ends.append(np.median([energy(x) for x in found]))
        print(f"{name:7} {'  '.join(f'{end:.3f}' for end in ends)}")
        (line,) = ax.loglog(BUDGETS, ends, "o-", ms=11)
        ax.text(BUDGETS[-1] * 1.04, ends[-1], name, color=line.get_color(), va="center")
        if name == "scgd":
            best = 100 * ends[-1] / abs(LOWEST)
    ax.set_xticks(BUDGETS, [f"{n:,}" for n in BUDGETS])
    ax.minorticks_off()
    ax.set_xlabel("energies measured, 200 shots each")
    ax.set_ylabel("energy above the lowest")
    figure.suptitle(f"Spin chain: energy within {best:.0f} % of the lowest", x=0.02, ha="left")
    figure.savefig("spins.svg")


if __name__ == "__main__":
    main()
