"""CPU seconds of a first fit, or a first run, in a fresh process with an empty compile cache.

``python benchmarks/bench_cold.py`` starts a process per row and repeat, and prints the least CPU
seconds of the call, and of the imports before it; then the same again with a full cache. Imports
of NumPy, SciPy and scikit-learn themselves are made before the clock starts. Aims: 6 s for a fit,
3 s for ``minimize(method="musketeer")``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

CODE = """
import time
import numpy as np
from scipy import sparse
import scipy.linalg, scipy.optimize, sklearn.linear_model, sklearn.model_selection
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 40))
wide = rng.normal(size=(200, 2000))
words = sparse.random_array((2000, 3000), density=0.01, format="csr", rng=rng)
y, signs, many = X[:, 0], np.sign(X[:, 0]), np.sign(words @ rng.normal(size=3000) + 1e-9)
began = time.process_time()
{imports}
ready = time.process_time()
{call}
print(ready - began, time.process_time() - ready)
"""
LINEAR = "from scgd.linear import SCGDClassifier, SCGDRegressor, SCGDRegressorCV"
ROWS = {
    "ridge, few features": (LINEAR, "SCGDRegressor().fit(X, y)"),
    "l2 logistic, few features": (LINEAR, "SCGDClassifier().fit(X, signs)"),
    "lasso, few features": (LINEAR, "SCGDRegressor(penalty='l1', alpha=.01).fit(X, y)"),
    "lasso, working sets": (LINEAR, "SCGDRegressor(penalty='l1', alpha=.1).fit(wide, wide[:, 0])"),
    "l1 logistic, sparse": (LINEAR, "SCGDClassifier(penalty='l1', alpha=.01).fit(words, many)"),
    "dual logistic, sparse": (LINEAR, "SCGDClassifier().fit(words, many)"),
    "dual squared hinge, sparse": (LINEAR, "SCGDClassifier('squared-hinge').fit(words, many)"),
    "dual hinge, sparse": (LINEAR, "SCGDClassifier('hinge').fit(words, many)"),
    "policy='musketeer'": (LINEAR, "SCGDRegressor(policy='musketeer').fit(X, y)"),
    "policy='uniform'": (LINEAR, "SCGDRegressor(policy='uniform').fit(X, y)"),
    "partial_fit": (LINEAR, "SCGDRegressor().partial_fit(X, y)"),
    "lasso path, cross-validated": (LINEAR, "SCGDRegressorCV(penalty='l1').fit(X, y)"),
    "minimize(method='musketeer')": (
        "from scgd import minimize",
        "minimize(lambda x: float(x @ x), np.ones(50), method='musketeer', max_evals=500)"),
    "minimize()": (
        "from scgd import minimize", "minimize(lambda x: float(x @ x), np.ones(50), max_evals=500)"),
}  # fmt: skip


def once(imports: str, call: str, cache: str) -> tuple[float, float]:
    """Return the CPU seconds of the imports and of the call."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE.format(imports=imports, call=call)],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.split()
    return float(first), float(second)


def main(n_repeats: int = 3, only: str = "") -> None:
    """Print a table."""
    print(f"{'':32}{'import':>8}{'call':>8}   with a full cache")
    for name, row in ROWS.items():
        if only not in name:
            continue
        cold, warm = [], []
        for _ in range(n_repeats):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(once(*row, cache))
                warm.append(once(*row, cache))
        least = [min(values) for found in (cold, warm) for values in zip(*found, strict=True)]
        print(f"{name:32}" + "".join(f"{seconds:8.2f}" for seconds in least), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, *sys.argv[2:])
