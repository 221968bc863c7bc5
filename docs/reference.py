"""The API reference: a page per room, with every public name, written when the site is built."""

from collections import defaultdict
from importlib import import_module
from inspect import isclass
from pathlib import Path
from types import GenericAlias

ROOMS = {
    "minimize": "Black boxes",
    "optimizer": "Black boxes",
    "plans": "Black boxes",
    "recipes": "Black boxes",
    "checkpoint": "Black boxes",
    "policies": "Policies",
    "estimators": "Estimators",
    "steps": "Step rules",
    "schedules": "Schedules",
}
"""The page of a room's names; a room that is not here has a page of its own name."""

MODULES = {
    "scgd.linear": "Linear models",
    "scgd.torch": "PyTorch",
    "scgd.torch.blocks": "PyTorch: blocks",
    "scgd.theory": "Theory",
    "scgd.searches": "Searches",
}
"""Public modules beside ``scgd`` itself, and the titles of their pages."""

SYMBOLS = {
    "ESTIMATORS": "estimators", "METHODS": "plans", "POLICIES": "policies", "RECIPES": "recipes",
    "SCHEDULES": "schedules", "STEPS": "steps",
}  # fmt: skip
"""Tables do not say where they come from."""

ROUTING = "set_fit_request, set_score_request, set_partial_fit_request, set_predict_request"
"""Methods that scikit-learn adds and documents itself."""


def pages() -> dict[str, list[str]]:
    """Return the full names of all public objects by page title."""
    found: dict[str, list[str]] = defaultdict(list)
    package = import_module("scgd")
    for name in package.__all__:
        thing = getattr(package, name)
        where = getattr(thing, "__module__", "") or ""
        room = SYMBOLS.get(name) or where.removeprefix("scgd.").split(".")[0]
        found[ROOMS.get(room, room.capitalize())].append(f"scgd.{name}")
    shown: set[str] = set()  # a name that two modules export has one place
    for module, title in MODULES.items():
        names = [name for name in import_module(module).__all__ if name not in shown]
        found[title] += [f"{module}.{name}" for name in names]
        shown.update(names)
    return found


def directive(name: str) -> str:
    """Return the directive that documents an object."""
    module, _, attribute = name.rpartition(".")
    thing = getattr(import_module(module), attribute)
    if isclass(thing) and not isinstance(thing, GenericAlias):
        return f".. autoclass:: {name}\n   :members:\n   :exclude-members: {ROUTING}\n"
    if isinstance(thing, GenericAlias):
        return f".. data:: {name}\n\n   A type: ``{thing}``.\n"
    if callable(thing):
        return f".. autofunction:: {name}\n"
    rows = ", ".join(f"``{row}``" for row in thing)
    return f".. data:: {name}\n\n   By name: {rows}.\n"


def write(folder: Path) -> None:
    """Write a page per title and the page that lists them."""
    folder.mkdir(exist_ok=True)
    names = []
    for title, things in pages().items():
        name = title.lower().replace(":", "").replace(" ", "-")
        body = "\n".join(directive(thing) for thing in things)
        keep(folder / f"{name}.rst", f"{title}\n{'=' * len(title)}\n\n{body}")
        names.append(f"{title} <{name}>")
    tree = "\n".join(f"   {name}" for name in names)
    head = "API reference\n=============\n\nEvery public name, by room.\n\n"
    keep(folder / "index.rst", f"{head}.. toctree::\n   :maxdepth: 2\n\n{tree}\n")


def keep(path: Path, text: str) -> None:
    """Write a file unless it says that already, so that only what changed is built again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def setup(app) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them."""
    write(Path(app.srcdir) / "api")
    return {"parallel_read_safe": True}
