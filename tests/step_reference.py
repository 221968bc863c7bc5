"""Step rules in slow plain Python, written from their formulas; nothing of the library is used.

Each returns what is subtracted from a coordinate, given all gradients seen there (the last one is
the new one), the rate, and a dict that all coordinates share.
"""

from math import exp, sqrt


def running_mean(values, least):
    """A plain mean of the first values that forgets with weight ``least`` from there on."""
    mean = 0.0
    for n, value in enumerate(values, 1):
        weight = max(1 / n, least)
        mean = (1 - weight) * mean + weight * value
    return mean


def discounted(values, beta):
    n = len(values)
    return sum(beta ** (n - 1 - i) * value for i, value in enumerate(values))


def clip(value, low, high):
    return low if value < low else high if value > high else value


def sgd(rule, grads, rate, own, shared):
    return rate * grads[-1]


def momentum(rule, grads, rate, own, shared):
    velocity = discounted(grads, rule.beta)
    return rate * (grads[-1] + rule.beta * velocity if rule.nesterov else velocity)


def rms(rule, grads, rate, own, shared):
    square = running_mean([g * g for g in grads], 1 - rule.beta)
    return rate * grads[-1] / (sqrt(square) + rule.epsilon) if square else 0.0


def adam(rule, grads, rate, own, shared):
    n = len(grads)
    mean = (1 - rule.beta1) * discounted(grads, rule.beta1) / (1 - rule.beta1**n)
    square = discounted([g * g for g in grads], rule.beta2) * (1 - rule.beta2)
    square /= 1 - rule.beta2**n
    return rate * mean / (sqrt(square) + rule.epsilon) if square else 0.0


def agreement(grads, least_mean, least_square):
    """How the new gradient agrees with the mean of the earlier ones, between -1 and 1."""
    before, grad = grads[:-1], grads[-1]
    square = running_mean([g * g for g in before], least_square)
    largest = max(square, grad * grad)
    if not before or largest == 0:
        return 0.0
    return grad * running_mean(before, least_mean) / largest


def learned(rule, grads, rate, own, shared):
    forget = 1 - rule.beta
    agreed = agreement(grads, forget, forget)
    limits = rule.shortest, rule.longest
    own["log"] = clip(own.get("log", 0.0) + rule.gain * agreed, *limits)
    shared["log"] = clip(shared.get("log", 0.0) + rule.shared_gain * agreed, *limits)
    size = rate * sqrt(running_mean([g * g for g in grads], forget))
    shared.setdefault("sizes", []).append(size)
    typical = running_mean(shared["sizes"], 0.002)
    if size == 0:
        return 0.0
    power = (1 + shared.get("progress", 0.0)) / 2
    divisor = size**power * typical ** (1 - power)
    return rate * exp(shared["log"] + own["log"]) * rate * grads[-1] / divisor


def wiener(rule, grads, rate, own, shared):
    n, forget = len(grads), 1 - rule.beta
    agreed = agreement(grads, forget, 1 - rule.beta2)
    log = shared.get("log", 0.0) + rule.shared_gain * agreed
    shared["log"] = clip(log, -rule.longest, rule.longest)
    mean = running_mean(grads, forget)
    square = running_mean([g * g for g in grads], 1 - rule.beta2)
    if mean == 0 or square == 0:
        return 0.0
    effective = min(n, 2 / forget - 1)
    noise = rule.shrinkage * square / (effective * mean**2) if n >= 20 else 0.0
    return rate * exp(shared["log"]) * max(0.0, 1 - noise) * mean / sqrt(square)


REFERENCES = {
    "sgd": sgd,
    "momentum": momentum,
    "rms": rms,
    "adam": adam,
    "learned": learned,
    "wiener": wiener,
}
