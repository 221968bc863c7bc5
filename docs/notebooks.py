"""The tutorials as notebooks: where the program saves a picture, the notebook shows it.

The site offers them for download (Sphinx-Gallery makes them, :func:`adapt` goes over them), and
``tests/test_notebooks.py`` executes them.
"""

import json
import re
from pathlib import Path

__all__ = ["adapt", "notebook"]

SAVES = re.compile(r"^\w+\.savefig\(.*?\)$", re.M | re.S)


def adapt(app):
    """Go over the notebooks of a site, before they are copied."""
    for folder in app.config.sphinx_gallery_conf["gallery_dirs"]:
        for path in Path(app.srcdir, folder).glob("*.ipynb"):
            content = json.loads(path.read_text())
            show_pictures(content)
            path.write_text(json.dumps(content, indent=1))


def show_pictures(content):
    """Have the cells of a notebook show their figures instead of saving them."""
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = SAVES.sub("plt.show()", "".join(cell["source"]))


def notebook(path: Path) -> dict:
    """Return a tutorial as a notebook: a cell per block, what it says above it."""
    head, *blocks = re.split(r"^# %%.*\n", path.read_text(), flags=re.M)
    _, text, code = head.split('"""', 2)
    parts = [("markdown", text), ("code", code)]
    for block in blocks:
        comment, code = re.match(r"((?:#[^\n]*\n)*)(.*)", block, re.S).groups()
        parts += [("markdown", re.sub(r"^# ?", "", comment, flags=re.M)), ("code", code)]
    cells = [
        {"cell_type": kind, "metadata": {}, "source": text.strip()}
        | ({"outputs": [], "execution_count": None} if kind == "code" else {})
        for kind, text in parts
        if text.strip()
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    content = {
        "nbformat": 4,
        "nbformat_minor": 4,
        "metadata": {"kernelspec": kernel},
        "cells": cells,
    }
    show_pictures(content)
    return content
