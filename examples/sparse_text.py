"""
Sparse text
===========

Classify text: which package of the standard library does a line of Python come from?

Real text that is on every machine: some 17,000 lines, 7,000 words, sparse rows. Coordinates of the
dual problem are drawn row by row; the certificate says how far the fit is from the optimum. Writes
sparse_text.html with the words that speak loudest.
"""

import os
import time
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from scgd.linear import SCGDClassifier

LIBRARY = Path(os.__file__).parent
PACKAGES = ("asyncio", "email", "multiprocessing", "tkinter")


def lines_of(package):
    """Return the lines of a package that have at least four words."""
    for path in sorted((LIBRARY / package).rglob("*.py")):
        for line in path.read_text(errors="ignore").splitlines():
            if len(line.split()) >= 4:
                yield line


def main():
    texts, packages = zip(
        *((line, name) for name in PACKAGES for line in lines_of(name)), strict=True
    )
    words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"[A-Za-z_]{2,}")
    X = words.fit_transform(texts)
    y = np.array(packages)
    train, test, answers, held_out = train_test_split(X, y, random_state=0)
    print(f"{X.shape[0]:,} lines, {X.shape[1]:,} words, {X.nnz / X.shape[0]:.1f} words a line")
    started = time.perf_counter()
    model = SCGDClassifier(alpha=1e-5, random_state=0).fit(train, answers)
    print(f"fitted in {time.perf_counter() - started:.1f} s (the first time, compiling included)")
    print(f"accuracy on held-out lines {model.score(test, held_out):.3f}")
    picture(model, words.get_feature_names_out()).write_html(
        "sparse_text.html", config={"displayModeBar": False}
    )
    print("picture: sparse_text.html")


def picture(model, names):
    """Draw the eight words that speak loudest for each package."""
    figure = go.Figure()
    for package, coefs in zip(model.classes_, model.coef_, strict=True):
        top = np.argsort(coefs)[-8:]
        figure.add_bar(x=coefs[top], y=names[top], orientation="h", name=package)
    figure.update_yaxes(dtick=1)
    figure.update_layout(
        template="plotly_white", height=760, font_size=13, xaxis_title="coefficient",
        title="words that give a package away", legend={"orientation": "h", "y": -0.12},
    )  # fmt: skip
    return figure


if __name__ == "__main__":
    main()
