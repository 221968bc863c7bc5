"""Pictures of the gallery: an example writes a picture, and the site shows it.

A picture is an SVG file in the colours of ``scgd.plots.data``; on the site it follows the light or
dark look of the page. Examples that need a cluster or minutes are not executed at build time: the
site shows the picture kept in ``images/gallery`` and the command that makes it.
"""

import re
import sys
from pathlib import Path

from scgd.plots.data import DARK, LIGHT

__all__ = ["HEAVY", "ORDER", "ByDoor", "Pages", "adaptive"]

HEAVY = ("train_blocks", "dask_cluster")
"""Examples that are not executed at build time."""

ORDER = (
    "first_run", "which_inputs_matter", "screen_inputs", "six_digits", "outliers",
    "simulator_calibration", "spins",
    "policy_search", "portfolio", "adversarial", "see_what_happened",
    "hyperparameters", "optuna_study", "laboratory", "dask_cluster",
    "sparse_text", "alpha_path", "train_blocks", "forward_passes",
    "musketeer", "adding_a_policy",
    "black_box", "linear_models", "torch_blocks",
)  # fmt: skip
"""The first run first, then black boxes, spaces, linear models, PyTorch, the paper; tutorials."""

SHOWN = """
.. image:: /{place}
   :alt: {title}
   :class: picture
"""


class ByDoor:
    """Sort the examples of a folder as ``ORDER`` has them; one that is not there is an error."""

    def __init__(self, src_dir: str) -> None:
        pass

    def __repr__(self) -> str:
        return "ByDoor()"

    def __call__(self, filename: str) -> int:
        """Return the place of an example."""
        return ORDER.index(Path(filename).stem)


class Pages:
    """Move the pictures an example has written into the site."""

    def __repr__(self) -> str:
        return "Pages()"

    def __call__(self, block, variables, gallery) -> str:
        """Return what stands below a block of an example."""
        shown = []
        for picture in sorted(Path(variables["src_file"]).parent.glob("*.svg")):
            place = Path(next(variables["image_path_iterator"])).with_suffix(".svg")
            text = picture.read_text()
            place.write_text(adaptive(text))
            picture.unlink()
            where = place.relative_to(gallery["src_dir"]).as_posix()
            shown.append(SHOWN.format(place=where, title=title_of(text)))
        return "".join(shown)


def title_of(picture: str) -> str:
    """Return the largest text of a picture, which tells its result."""
    found = re.findall(
        r'<text style="font: (?:bold|700) ([\d.]+)px[^>]*>(.*?)</text>', picture, re.S
    )
    return max(found, key=lambda pair: float(pair[0]))[1].strip() if found else "picture"


def adaptive(picture: str) -> str:
    """Return a picture whose words and lines are light where the page around it is dark."""
    style = ""
    for name, theme in (("light", LIGHT), ("dark", DARK)):
        names = "".join(
            f"--{part}:{getattr(theme, part)};" for part in ("ground", "ink", "soft", "line")
        )
        rule = f":root{{{names}}}"
        style += rule if name == "light" else f"@media (prefers-color-scheme: dark){{{rule}}}"
    for part in ("ground", "ink", "soft", "line"):
        picture = picture.replace(getattr(LIGHT, part), f"var(--{part})")
    start = picture.index(">", picture.index("<svg")) + 1
    return f"{picture[:start]}<style>{style}</style>{picture[start:]}"


if __name__ == "__main__":  # python docs/pictures.py train_blocks.svg: keep a picture
    for name in sys.argv[1:]:
        kept = Path(__file__).parent / "images" / "gallery" / Path(name).name
        kept.write_text(adaptive(Path(name).read_text()))
