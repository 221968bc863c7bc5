"""
A lasso along its whole path
============================

Which features enter as the penalty falls, and which penalty predicts best?

Each model starts from its neighbour's solution; five folds choose the penalty. scikit-learn's
``LassoCV`` follows the same path in less time: take ours for other losses and penalties, or for
its certificate. Needs ``pip install matplotlib`` and writes alpha_path.svg.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from scgd.linear import SCGDRegressor, SCGDRegressorCV

data = load_diabetes()
products = PolynomialFeatures(2, include_bias=False).fit(data.data)
X = StandardScaler().fit_transform(products.transform(data.data))
y = data.target - data.target.mean()
names = products.get_feature_names_out(data.feature_names)


def main():
    search = SCGDRegressorCV(penalty="l1", alphas=40, cv=5, random_state=0).fit(X, y)
    used = np.count_nonzero(search.coef_)
    print(f"alpha {search.alpha_:.3g}: {used} of {X.shape[1]} features")
    print(f"R2 over the folds {search.best_score_:.3f}")
    coefs = np.array(
        [SCGDRegressor(penalty="l1", alpha=alpha, random_state=0).fit(X, y).coef_
         for alpha in search.alphas_]
    )  # fmt: skip
    picture(search, coefs, used)


def picture(search, coefs, used):
    """Draw coefficients against the penalty down to a twentieth of the best one."""
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    shown = search.alphas_ >= search.alpha_ / 20
    largest = np.argsort(-np.abs(coefs[np.argmin(np.abs(search.alphas_ - search.alpha_))]))[:4]
    for k in range(coefs.shape[1]):
        big = k in largest
        ax.semilogx(
            search.alphas_[shown], coefs[shown, k], lw=5 if big else 2,
            color="#0b8f8a" if big else "#b4bac2", zorder=3 if big else 2,
        )  # fmt: skip
    for k in largest:
        ax.text(
            search.alphas_[shown][-1] * 0.93, coefs[shown, k][-1], names[k], color="#0b8f8a",
            va="center",
        )  # fmt: skip
    ax.axvline(search.alpha_, color="#e0701a", ls=":")
    ax.text(
        search.alpha_ * 1.05, coefs[shown].max(), "best of five folds", color="#e0701a",
        ha="right", va="top",
    )  # fmt: skip
    ax.invert_xaxis()
    ax.set_xlabel("penalty alpha, falling")
    ax.set_ylabel("coefficient")
    figure.suptitle(f"{used} of {coefs.shape[1]} features predict best", x=0.02, ha="left")
    figure.savefig("alpha_path.svg")


if __name__ == "__main__":
    main()
