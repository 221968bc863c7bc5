"""
See what happened
=================

Which inputs of a simulator matter: ten lines, a table and a page of pictures.

Run it: ``python examples/see_what_happened.py`` (writes see_what_happened.html).
"""

import numpy as np

import scgd

MATTER = {3: 5.0, 7: 3.0, 11: 2.0, 20: 1.0}


def main(max_evals=3000):
    weights = np.full(40, 0.01)
    weights[list(MATTER)] = list(MATTER.values())

    def simulator(x):
        return float(np.sum(weights * (x - 1) ** 2) + 0.1 * np.sin(3 * x[3]) ** 2)

    result = scgd.minimize(
        simulator, np.zeros(40), max_evals=max_evals, seed=1, reporting=scgd.Reporting(record=True)
    )
    print(result)
    print(result.evaluations)
    result.plot().write_html("see_what_happened.html")
    print("wrote see_what_happened.html")
    return result


if __name__ == "__main__":
    main()
