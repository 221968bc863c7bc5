"""
Hyper-parameters
================

Tune a classifier: which kind, and the parameters of that kind, by its cross-validated log loss.

A choice of three learners, each with parameters of its own that exist only where it is chosen.
Compares with random search over the same space and writes hyperparameters.html.
"""

import warnings
from functools import partial

import numpy as np
from plotly.subplots import make_subplots
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import scgd

DATA, TARGET = load_breast_cancer(return_X_y=True)
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)
LEARNERS = {"linear": LogisticRegression, "neighbours": KNeighborsClassifier}
LEARNERS["tree"] = partial(DecisionTreeClassifier, random_state=0)
SPACE = scgd.Space(
    learner=scgd.Choice("tree", "neighbours", "linear"),
    max_depth=scgd.Int(1, 20, when={"learner": "tree"}),
    min_samples_leaf=scgd.Int(1, 50, log=True, when={"learner": "tree"}),
    n_neighbors=scgd.Int(1, 100, log=True, when={"learner": "neighbours"}),
    p=scgd.Float(1, 4, when={"learner": "neighbours"}),
    weights=scgd.Choice("uniform", "distance", when={"learner": "neighbours"}),
    C=scgd.Float(1e-4, 1e4, log=True, when={"learner": "linear"}),
    tol=scgd.Float(1e-6, 1e-1, log=True, when={"learner": "linear"}),
)


def loss(params):
    """Return the log loss of the learner that the parameters describe."""
    parts = dict(params)
    learner = LEARNERS[parts.pop("learner")](**parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of learners that do not converge
        scores = cross_val_score(
            make_pipeline(StandardScaler(), learner), DATA, TARGET, cv=FOLDS, scoring="neg_log_loss"
        )
    return float(-scores.mean())


def main():
    result = scgd.minimize(loss, SPACE, max_evals=80, seed=1)
    other = scgd.minimize(loss, SPACE, method="random", max_evals=80, seed=1)
    print(result.message)
    print(f"log loss: {loss(SPACE.start):.4f} at the start, {result.fun:.4f} with {result.params}")
    print(f"random search: {other.fun:.4f}")
    picture(result, other).write_html("hyperparameters.html", config={"displayModeBar": False})
    print("picture: hyperparameters.html")


def picture(result, other):
    """Draw the best value so far, and what the model sees matter."""
    figure = make_subplots(
        1, 2, subplot_titles=("best log loss so far", "relevance of each parameter"),
        column_widths=[0.55, 0.45], horizontal_spacing=0.2,
    )  # fmt: skip
    for found, name, colour in ((other, "random search", "#94a3b8"), (result, "auto", "#2563eb")):
        line = {"color": colour, "width": 3, "shape": "hv"}
        nfev, fun = found.history["nfev"], found.history["fun"]
        figure.add_scatter(x=nfev, y=fun, line=line, name=name, row=1, col=1)
    order = np.argsort(result.weights)
    names = [SPACE.names[k] for k in order]
    figure.add_bar(
        x=result.weights[order], y=names, orientation="h", marker_color="#2563eb",
        showlegend=False, row=1, col=2,
    )  # fmt: skip
    figure.update_xaxes(title_text="evaluations", row=1, col=1)
    figure.update_yaxes(type="log", row=1, col=1)
    figure.update_layout(
        template="plotly_white", height=480, font_size=14, legend={"x": 0.3, "y": 0.95},
        title=f"Three learners and their parameters: log loss {result.fun:.4f}",
    )  # fmt: skip
    return figure


if __name__ == "__main__":
    main()
