"""What the arguments of other libraries' doors take: SciPy, scikit-learn's searches, Optuna."""

import optuna
from doors_core import bowl
from doors_linear import MANY_X, MANY_Y
from sklearn.linear_model import Ridge

import scgd
from scgd.optuna import SCGDSampler
from scgd.sklearn import SCGDSearchCV


def search_cv(estimator=None, space=None, **keywords):
    estimator = Ridge() if estimator is None else estimator
    space = {"alpha": scgd.Float(1e-3, 1e3, log=True)} if space is None else space
    return SCGDSearchCV(estimator, space, **{"n_iter": 3, "cv": 2, **keywords}).fit(MANY_X, MANY_Y)


def study(**keywords):
    """Run two trials."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    made = optuna.create_study(sampler=SCGDSampler(**{"n_trials": 2, **keywords}))
    made.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)


DOORS = {
    "SCGDSearchCV": (search_cv, SCGDSearchCV, {
        "estimator": "none", "space": "none", "n_iter": "count", "batch_size": "count",
        "method": "none", "n_jobs": "count+none+whole", "return_train_score": "flag",
    }, True, ("cv", "scoring", "refit", "pre_dispatch", "error_score")),
    "scipy_method": (
        lambda fun=bowl, x0=(1.0, 2.0, 3.0), **k: scgd.scipy_method(
            fun, x0, **{"max_evals": 6, "method": "uniform", "scale": 1.0, **k}),
        scgd.scipy_method,
        {"fun": "callable", "x0": "vector+one+number", "jac": "callable+none", "bounds": "none",
         "constraints": "nothing+none", "callback": "callable+none", "maxiter": "count+none",
         "tol": "fraction+none"},
        False, ("hess", "hessp", "disp"),
    ),
    "SCGDSampler": (study, SCGDSampler, {
        "n_trials": "count", "method": "none", "search_space": "none", "seed": "none+natural",
    }),
}  # fmt: skip
