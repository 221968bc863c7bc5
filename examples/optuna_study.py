"""
A study in Optuna
=================

An Optuna study on a database, sampled by scgd, with pruning; start it twice for two workers.

Run it: ``python examples/optuna_study.py``, then
``optuna-dashboard sqlite:///study.db``, which shows:

.. image:: /images/gallery/optuna_study.png
   :alt: the study in the dashboard
"""
# sphinx_gallery_thumbnail_path = 'images/gallery/optuna_study.png'

import optuna
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

from scgd.optuna import SCGDSampler


def main(n_trials=30, storage="sqlite:///study.db"):
    X, y = load_digits(return_X_y=True)
    train, test, labels, answers = train_test_split(X / 16, y, random_state=0)

    def objective(trial):
        model = SGDClassifier(
            alpha=trial.suggest_float("alpha", 1e-7, 1, log=True),
            penalty=trial.suggest_categorical("penalty", ["l2", "l1", "elasticnet"]),
            learning_rate="constant",
            eta0=trial.suggest_float("eta0", 1e-4, 1, log=True),
            random_state=0,
        )
        for epoch in range(8):
            model.partial_fit(train, labels, classes=range(10))
            trial.report(model.score(test, answers), epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return model.score(test, answers)

    study = optuna.create_study(
        storage=storage, study_name="digits", direction="maximize", load_if_exists=True,
        sampler=SCGDSampler(n_trials=n_trials), pruner=optuna.pruners.MedianPruner(),
    )  # fmt: skip
    study.optimize(objective, n_trials=n_trials)
    print(f"accuracy {study.best_value:.4f} with {study.best_params}")
    return study


if __name__ == "__main__":
    main()
