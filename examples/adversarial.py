"""
Adversarial images without gradients
====================================

Fool a trained classifier by changing no pixel by more than a fifth, from its scores alone.

``bounds`` keep the image near the original; ``target`` ends the run as soon as the classifier
errs. CMA-ES (pycma) needs more queries for the same images. On images this small a greedy
search over pixels needs fewer: 54 at the median. Needs ``pip install matplotlib cma`` and
writes adversarial.svg.
"""

import cma
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import scgd

MOST, IMAGES, QUERIES = 0.2, 12, 2500


def attack(margin, image, low, high):
    """Return the image that scgd ends at, and the queries it took."""
    result = scgd.minimize(
        margin, image, bounds=np.c_[low, high], max_evals=QUERIES, target=0, seed=0
    )
    return result.x, result.nfev


def attack_by_cma(margin, image, low, high):
    """Return the same for CMA-ES."""
    options = {
        "maxfevals": QUERIES, "ftarget": 0, "seed": 1, "verbose": -9,
        "bounds": [low - 1e-9, high + 1e-9],
    }  # fmt: skip
    es = cma.fmin2(margin, image, 0.1, options)[1]
    return es.result.xbest, es.countevals


def main():
    images, digits = load_digits(return_X_y=True)
    images = images / 16.0
    model = MLPClassifier((64,), max_iter=300, random_state=0, tol=1e-3)
    model.fit(images[:1500], digits[:1500])
    right = np.flatnonzero(model.predict(images[1500:]) == digits[1500:])[:IMAGES] + 1500
    fooled, queries = [], {"scgd": [], "CMA-ES": []}
    for image, digit in zip(images[right], digits[right], strict=True):

        def margin(x, digit=digit):
            scores = np.log(model.predict_proba(x[None])[0] + 1e-300)
            return float(scores[digit] - np.max(np.delete(scores, digit)))

        box = np.maximum(image - MOST, 0), np.minimum(image + MOST, 1) + 1e-9
        changed, n = attack(margin, image, *box)
        fooled.append((image, digit, changed, model.predict(changed[None])[0]))
        queries["scgd"].append(n)
        queries["CMA-ES"].append(attack_by_cma(margin, image, *box)[1])
    for name, numbers in queries.items():
        print(f"{name:7} median {np.median(numbers):.0f} queries, most {max(numbers):,}")
    picture(fooled, queries)


def picture(fooled, queries):
    """Draw six of the images, before and after."""
    plt.style.use("scgd.plots.slide")
    figure, axes = plt.subplots(2, 6)
    for column, (image, digit, changed, guess) in enumerate(fooled[1:7]):
        for ax, pixels, words in zip(
            axes[:, column], (image, changed), (f"a {digit}", f"read as {guess}"), strict=True
        ):
            ax.imshow(pixels.reshape(8, 8), vmin=0, vmax=1)
            ax.set_title(words, loc="center", color="#0b8f8a" if ax in axes[1] else "#1c1e21")
            ax.set_axis_off()
    wrong = sum(digit != guess for _, digit, _, guess in fooled)
    ours, others = (np.median(queries[name]) for name in ("scgd", "CMA-ES"))
    figure.suptitle(
        f"{wrong} of {len(fooled)} digits fooled in {ours:.0f} queries; CMA-ES: {others:.0f}",
        x=0.02, ha="left",
    )  # fmt: skip
    figure.savefig("adversarial.svg")


if __name__ == "__main__":
    main()
