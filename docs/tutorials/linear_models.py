"""
Linear models, a tutorial
=========================

``SCGDClassifier`` and ``SCGDRegressor`` are scikit-learn estimators: they fit pipelines, grid
searches and sparse matrices. Each solution comes with a certificate of how far it is from the best
one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

from scgd.linear import SCGDClassifier, SCGDRegressorCV

# %%
# Badly scaled features are where most logistic solvers give up: these columns differ by four
# decades and are left as they are.

X, y = load_breast_cancer(return_X_y=True)
train, test, answers, held_out = train_test_split(X, y, random_state=0)
model = SCGDClassifier(alpha=1e-3, random_state=0).fit(train, answers)
print(
    f"accuracy {model.score(test, held_out):.3f}, gap to the optimum at most {model.dual_gap_:.1e}"
)

# %%
# The strength of the penalty is chosen by cross-validation along a path, each model starting from
# its neighbour's solution.

X, y = load_diabetes(return_X_y=True)
path = SCGDRegressorCV(penalty="l1", cv=5, random_state=0).fit(X, y)
print(f"alpha {path.alpha_:.3g}, {np.count_nonzero(path.coef_)} of {X.shape[1]} features")

# %%
# What the penalty keeps:

names = load_diabetes().feature_names
order = np.argsort(path.coef_)
plt.style.use("scgd.plots.slide")
figure, ax = plt.subplots()
ax.bar(np.array(names)[order], path.coef_[order], color="#0b8f8a")
ax.set_ylabel("coefficient")
ax.set_xlabel("feature")
kept = np.count_nonzero(path.coef_)
figure.suptitle(f"{kept} of {len(names)} features are kept", x=0.02, ha="left")
figure.savefig("linear_models.svg")
