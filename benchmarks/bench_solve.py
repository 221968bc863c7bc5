"""What a single call of ``scgd_paper.linear.solve`` costs beside its steps.

Processor time of a call with 10 steps and of one with 10,000, on the data of Figure 1 (10,000 by
250), against two products of the data with a vector.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from scgd_paper.linear import solve
from scgd_paper.linear.problems import block_data

REPEATS = 15


def least(call: Callable[[], object]) -> float:
    """Return the least processor time of some calls, in milliseconds."""
    spent = []
    for _ in range(REPEATS):
        began = time.process_time()
        call()
        spent.append(time.process_time() - began)
    return 1e3 * min(spent)


def main() -> None:
    """Print the table."""
    data = block_data("ridge", 10_000, 250, 5.0, 10, "published", truth=(-1.0, 1.0))
    theta = np.ones(250)

    def steps(n: int) -> None:
        solve(data.X, data.y, l2=data.l2, batch_size=1, n_passes=n / 250, estimator="forward",
              learning_rate=0.01, radius=0.1, seed=0)  # fmt: skip

    steps(250)
    products = least(lambda: (data.X @ theta, data.X @ theta))
    few, many = least(lambda: steps(10)), least(lambda: steps(10_000))
    print(f"two products with the data {products:.2f} ms")
    print(f"10 steps {few:.2f} ms, {few / products:.1f} times that")
    print(f"10,000 steps {many:.2f} ms, {(many - few) / 10:.3f} us a step beyond the fixed cost")


if __name__ == "__main__":
    main()
