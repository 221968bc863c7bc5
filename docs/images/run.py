"""The picture of a run on docs/plots.md: ``python docs/images/run.py`` writes plot.svg."""

import re
from pathlib import Path

import numpy as np
from scipy.optimize import rosen

import scgd
from scgd.plots import svg

HERE, LINE = Path(__file__).parent, "#7a8594"


def simulator(x):
    """Return the value: 40 inputs, of which four matter."""
    return rosen(x[[3, 7, 11, 20]]) + 1e-3 * float(x @ x)


def panel(x, title, text):
    """Return a panel of the picture."""
    shapes = re.match(r"<svg ([^>]*)>(.*?)</svg>", text, re.S)
    head = f'<text x="{x + 20}" y="40" font-size="26" font-weight="600">{title}</text>'
    where = (
        f'x="{x}" y="60" width="550" height="270" overflow="visible" preserveAspectRatio="xMinYMin"'
    )
    return f"{head}<svg {where} {shapes[1]}>{shapes[2]}</svg>"


def main():
    result = scgd.minimize(simulator, np.full(40, -0.5), max_evals=1200, seed=1)
    style = svg.STYLE.replace("var(--soft,currentColor)", LINE).replace("var(--line,#8885)", LINE)
    style = style.replace("width:100%;height:auto;display:block;font:12px", "font:14px")
    style += ".grid{stroke-opacity:0.3}"
    parts = panel(0, "Value reached, against evaluations", svg.reached(result, result.nfev))
    parts += panel(600, "Most relevant inputs", svg.bars(result, 8))
    label = "the value reached against evaluations, and the most relevant inputs"
    (HERE / "plot.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" class="scgd" viewBox="0 0 1200 330" role="img" '
        f'aria-label="{label}"><style>{style}</style>{parts}</svg>\n'
    )


if __name__ == "__main__":
    main()
