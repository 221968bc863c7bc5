"""Pictures of the gallery: an example writes a page, and the site shows that page.

Examples that need a cluster, a trained network or minutes are not executed at build time; the site
shows the picture kept in ``images/gallery`` and the command that makes it.
"""

import re
import shutil
from pathlib import Path

__all__ = ["HEAVY", "ORDER", "ByDoor", "Pages"]

HEAVY = ("finetune_forward_only", "train_blocks", "dask_cluster", "optuna_study")
"""Examples that are not executed at build time."""

ORDER = (
    "first_run", "simulator_calibration", "which_inputs_matter", "screen_inputs",
    "see_what_happened",
    "hyperparameters", "optuna_study", "policy_search", "adversarial", "laboratory", "portfolio",
    "dask_cluster", "sparse_text", "alpha_path", "train_blocks", "finetune_forward_only",
    "adding_a_policy",
    "black_box", "linear_models", "torch_blocks",
)  # fmt: skip
"""The first run first, then by door: black boxes, linear models, PyTorch, one's own; tutorials."""

FRAME = """
.. raw:: html

    <iframe class="picture" style="height: {height}px" src="{source}" title="{title}"
            loading="lazy"></iframe>
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
    """Move the pages an example has written into the site, with one plotly for all.

    Parameters
    ----------
    thumbnails
        Folder with a picture ``NAME.png`` per example.
    """

    def __init__(self, thumbnails: Path) -> None:
        self.thumbnails = thumbnails

    def __repr__(self) -> str:
        return "Pages()"

    def __call__(self, block, variables, gallery) -> str:
        """Return what stands below a block of an example."""
        source = Path(variables["src_file"])
        shown = []
        for page in sorted(source.parent.glob("*.html")):
            place = Path(gallery["src_dir"]) / "_static" / "pictures" / page.name
            place.parent.mkdir(parents=True, exist_ok=True)
            share_plotly(page, place)
            height = height_of(page.read_text())
            page.unlink()
            source_of = f"../_static/pictures/{page.name}"
            shown.append(FRAME.format(source=source_of, title=page.stem, height=height))
        kept = self.thumbnails / f"{source.stem}.png"
        if shown and kept.exists():
            shutil.copyfile(kept, next(variables["image_path_iterator"]))
        return "".join(shown)


def height_of(page: str) -> int:
    """Return how high a page's picture is, with room for its toolbar."""
    found = re.findall(r'"height":\s*(\d+)', page[-200_000:])
    return max(map(int, found), default=440) + 40


def share_plotly(page: Path, place: Path) -> None:
    """Copy a page; the library inside it moves to a file that all pages share.

    ``dress.js`` gives the picture the site's light or dark look, and stacks panels on a phone.
    """
    from plotly.offline import get_plotlyjs

    library = place.parent / "plotly.min.js"
    script = get_plotlyjs()
    if not library.exists() or library.stat().st_size != len(script.encode()):
        library.write_text(script)
    text = page.read_text()
    before, inside, after = text.partition(script)
    if not inside:
        raise ValueError(f"{page.name} does not hold the plotly that is installed")
    before = before[: before.rindex("<script")] + '<script src="plotly.min.js">'
    after = after.replace("</body>", '<script src="../dress.js"></script></body>')
    place.write_text(before + after)
