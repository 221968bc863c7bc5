"""MUSKETEER in forty slow lines, written from the paper's text alone (Algorithms 1-3, Eqs. 5-7)."""

import numpy as np


def normalize(total_gain, normalization, sharpness):
    if normalization == "l1":
        return np.abs(total_gain) / np.abs(total_gain).sum()
    shifted = np.exp(sharpness * (total_gain - total_gain.max()))
    return shifted / shifted.sum()


def musketeer(fun, theta, draws, rates, radii, gain, normalization, sharpness, mixing, length):
    """Run the algorithm on given coordinates (n_phases, T); return all iterates and weights."""
    theta, p = theta.copy(), len(theta)
    weights, total_gain = np.full(p, 1 / p), np.zeros(p)
    iterates, laws, t = [], [weights], 0
    for n, coords in enumerate(draws):
        phase_gain = np.zeros(p)
        for zeta in coords:  # Explore
            step = np.zeros(p)
            step[zeta] = radii[t]
            grad = (fun(theta + step) - fun(theta)) / radii[t]
            theta[zeta] -= rates[t] * grad
            reward = {"average": grad, "absolute": abs(grad), "square": grad**2}[gain]
            phase_gain[zeta] += reward / weights[zeta] / length
            iterates.append(theta.copy())
            t += 1
        total_gain += (phase_gain - total_gain) / (n + 1)  # Exploit
        if np.any(total_gain):
            lam = mixing(n + 1)
            weights = (1 - lam) * normalize(total_gain, normalization, sharpness) + lam / p
        laws.append(weights)
    return np.array(iterates), np.array(laws)
