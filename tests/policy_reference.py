"""Sampling weights in slow plain Python, written from the formulas; no kernel of the library is used.

Each reference takes a policy and the phases it saw, each ``(coords, probs, grads, mixing, progress)``,
and returns the weights in force after them.
"""

import numpy as np

GAINS = {"average": lambda g: g, "absolute": abs, "square": lambda g: g * g}


def musketeer(policy, phases, p):
    """Equations 5 to 7, with the two memories of the authors' code."""
    total, running = [0.0] * p, [0.0] * p
    visits, mixing = [0] * p, 1.0
    for n, (coords, probs, grads, share, _) in enumerate(phases, 1):
        mixing, phase = share, [0.0] * p
        for k, prob, grad in zip(coords, probs, grads, strict=True):
            phase[k] += GAINS[policy.gain](grad) / prob
            visits[k] += 1
        for k in range(p):
            running[k] += phase[k]
            seen = running[k] if policy.memory == "run" else phase[k]
            total[k] += (seen / len(coords) - total[k]) / n
    if policy.memory == "visits":
        total = [running[k] / max(visits[k], 1) for k in range(p)]
    return mixed(normalized(policy, np.array(total)), mixing)


def normalized(policy, gains):
    if policy.rescale and np.any(gains):
        gains = np.abs(gains) / np.max(np.abs(gains))
    if policy.normalization == "softmax":
        return np.exp(policy.sharpness * (gains - np.max(gains)))
    return np.abs(gains)


def mixed(scores, mixing):
    scores = np.asarray(scores, float)
    if not np.any(scores):
        return np.full(len(scores), 1 / len(scores))
    return (1 - mixing) * scores / scores.sum() + mixing / len(scores)


def averaged(values, least):
    """A plain mean of the first values that forgets with weight ``least`` from there on."""
    mean = 0.0
    for n, value in enumerate(values, 1):
        weight = max(1 / n, least)
        mean = (1 - weight) * mean + weight * value
    return mean


def recent_gains(policy, phases, p):
    """u = a^(1-t) (|m| sqrt(vbar / sqrt v))^t, set when a coordinate is visited."""
    seen, roots, scores, mixing = [[] for _ in range(p)], [], [0.0] * p, 1.0
    for coords, _, grads, share, progress in phases:
        mixing = share
        for k, grad in zip(coords, grads, strict=True):
            seen[k].append(grad)
            roots.append(averaged([g * g for g in seen[k]], 1 - policy.beta) ** 0.5)
        typical = averaged(roots, 0.002)
        for k in set(coords):
            size = averaged([abs(g) for g in seen[k]], 1 - policy.beta)
            mean = averaged(seen[k], 1 - policy.beta)
            root = averaged([g * g for g in seen[k]], 1 - policy.beta) ** 0.5
            late = abs(mean) * (typical / root) ** 0.5 if root else 0.0
            scores[k] = size ** (1 - progress) * late**progress if root else 0.0
    return mixed(scores, mixing)


def equal(policy, phases, p):
    return np.full(p, 1 / p)


def fixed_weights(policy, phases, p):
    return np.array(policy.values) / sum(policy.values)


def adaptive(policy, phases, p):
    """Shuffled rounds: the shares of the round in which the next phase's last draw falls."""
    scores, credits, shares = [0.0] * p, [0.0] * p, [1 / p] * p
    left = n_rounds = 0

    def draw():
        nonlocal left, n_rounds
        for _ in range(p):
            while left <= 0:
                left = p if n_rounds < 2 else plan()
                n_rounds += 1
            left -= 1

    def plan():
        total, visits = sum(scores), 0
        for k in range(p):
            gain = p * scores[k] / total if total > 0 else 1.0
            shares[k] = min(policy.most, policy.least + (1 - policy.least) * gain)
        shares[:] = [share / sum(shares) for share in shares]
        for k in range(p):
            credits[k] = min(credits[k] + p * shares[k], policy.most + 1)
            n = min(int(credits[k]), int(policy.most), 2 * p - visits)
            credits[k] -= n
            visits += n
        return visits

    draw()
    for coords, _, grads, *_ in phases:
        for k, grad in zip(coords, grads, strict=True):
            scores[k] += policy.forget * (abs(grad) - scores[k])
        draw()
    return np.array(shares)


REFERENCES = {
    "adaptive": adaptive,
    "musketeer": musketeer,
    "recent-gains": recent_gains,
    "uniform": equal,
    "full": equal,
    "fixed-weights": fixed_weights,
}


def gauss_southwell(policy, gradient, block):
    largest = sorted(range(len(gradient)), key=lambda k: -abs(gradient[k]))[:block]
    return [1 / block if k in largest else 0.0 for k in range(len(gradient))]


def gradient_weights(policy, gradient, block):
    powers = [abs(g) ** policy.power for g in gradient]
    return [power / sum(powers) for power in powers]


CHOICES = {"gauss-southwell": gauss_southwell, "gradient-weights": gradient_weights}
