"""
Sparse text
===========

Which package of Python's library does a line come from? Learn it from 17,000 lines and 7,000
words.

``SCGDClassifier`` draws rows of the sparse matrix and says how far the fit is from the optimum.
scikit-learn's ``LogisticRegression`` minimises the same objective by its default solver.
Seconds are of the processor, the best of three fits each. Needs ``pip install matplotlib`` and
writes sparse_text.svg.
"""

import os
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from scgd.linear import SCGDClassifier

LIBRARY, ALPHA = Path(os.__file__).parent, 1e-5
PACKAGES = ("asyncio", "email", "multiprocessing", "tkinter")


def lines_of(package):
    """Return the lines of a package that have at least four words."""
    for path in sorted((LIBRARY / package).rglob("*.py")):
        for line in path.read_text(errors="ignore").splitlines():
            if len(line.split()) >= 4:
                yield line


def seconds(model, X, y):
    """Return the least time of three fits."""
    times = []
    for _ in range(3):
        start = time.process_time()
        model.fit(X, y)
        times.append(time.process_time() - start)
    return min(times)


def main():
    pairs = [(line, name) for name in PACKAGES for line in lines_of(name)]
    texts, packages = zip(*pairs, strict=True)
    words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"[A-Za-z_]{2,}")
    X, y = words.fit_transform(texts), np.array(packages)
    train, test, answers, held_out = train_test_split(X, y, random_state=0)
    print(f"{X.shape[0]:,} lines, {X.shape[1]:,} words, {X.nnz / X.shape[0]:.1f} words a line")
    ours = SCGDClassifier(alpha=ALPHA, random_state=0)
    other = LogisticRegression(C=1 / (ALPHA * train.shape[0]), tol=1e-6, max_iter=2000)
    binary = answers == "tkinter"
    times = seconds(ours, train, binary), seconds(other, train, binary)
    print(f"tkinter or not: {times[0]:.3f} s; scikit-learn {times[1]:.3f} s")
    ours.fit(train, answers)
    score = ours.score(test, held_out)
    print(f"accuracy on held-out lines {score:.3f}")
    picture(ours, words.get_feature_names_out(), score, times[1] / times[0])


def picture(model, names, score, factor):
    """Draw the words with the largest coefficients of each package."""
    plt.style.use("scgd.plots.slide")
    figure, axes = plt.subplots(1, len(PACKAGES))
    for ax, package, coefs in zip(axes, model.classes_, model.coef_, strict=True):
        top = np.argsort(coefs)[-5:]
        ax.barh(range(5), coefs[top], color="#0b8f8a", alpha=0.35)
        for row, k in enumerate(top):
            ax.text(0.3, row, names[k], va="center", fontsize=19)
        ax.set_title(package, fontsize=21, color="#0b8f8a", fontweight="bold")
        ax.set_yticks([])
        ax.grid(visible=False)
        ax.spines.left.set_visible(False)
    figure.supxlabel("coefficient of a word, the five largest", fontsize=23)
    figure.suptitle(
        f"Lines of code placed: {100 * score:.0f} % right, {factor:.0f} times faster",
        x=0.02, ha="left",
    )  # fmt: skip
    figure.savefig("sparse_text.svg")


if __name__ == "__main__":
    main()
