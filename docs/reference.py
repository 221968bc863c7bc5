"""The API reference: a page per room, with every public name, written when the site is built."""

import ast
from collections import defaultdict
from importlib import import_module
from inspect import isclass
from pathlib import Path
from types import GenericAlias

EXAMPLES = Path(__file__).parent.parent / "examples"

ROOMS = {
    "minimize": "Black boxes",
    "optimizer": "Black boxes",
    "plans": "Black boxes",
    "recipes": "Black boxes",
    "checkpoint": "Black boxes",
    "spaces": "Spaces",
    "policies": "Policies",
    "estimators": "Estimators",
    "steps": "Step rules",
    "schedules": "Schedules",
    "scipy": "Other doors",
}
"""The page of a name that ``scgd`` itself exports, by the room it comes from."""

MODULES = {
    "scgd.linear": "Linear models",
    "scgd.torch": "PyTorch",
    "scgd.torch.blocks": "PyTorch: blocks",
    "scgd.torch.blocks.trainers": "PyTorch: blocks",
    "scgd.scipy": "Other doors",
    "scgd.optuna": "Other doors",
    "scgd.sklearn": "Other doors",
    "scgd.theory": "Theory",
    "scgd.searches": "Searches",
}
"""Public modules beside ``scgd`` itself, and the titles of their pages."""

BESIDE = {
    "scgd.results.Result": "Black boxes",
    "scgd.evaluations.Evaluations": "Black boxes",
    "scgd.plans.Planned": "Searches",
    "scgd.linear.models.load_model": "Linear models",
    "scgd.linear.models.save_model": "Linear models",
    "scgd.linear.models.ModelError": "Linear models",
    "scgd.policies.Policy": "Policies",
    "scgd.steps.StepRule": "Step rules",
}
"""Public names of modules that are not public as a whole."""

TITLES = (
    "Black boxes", "Spaces", "Linear models", "PyTorch", "PyTorch: blocks", "Other doors",
    "Policies", "Estimators", "Step rules", "Schedules", "Searches", "Theory",
)  # fmt: skip
"""The order of the pages."""

FIRST = ("scgd.minimize", "scgd.results.Result", "scgd.Optimizer", "scgd.Trial")
"""What stands first on its page."""

SYMBOLS = {
    "ESTIMATORS": "estimators", "METHODS": "plans", "POLICIES": "policies", "RECIPES": "recipes",
    "SCHEDULES": "schedules", "STEPS": "steps",
}  # fmt: skip
"""Tables do not say where they come from."""

ROUTING = "set_fit_request, set_score_request, set_partial_fit_request, set_predict_request"
"""Methods that scikit-learn adds and documents itself."""


def pages() -> dict[str, list[str]]:
    """Return the full names of all public objects by page title."""
    found: dict[str, list[str]] = {title: [] for title in TITLES}
    package = import_module("scgd")
    for name in package.__all__:
        thing = getattr(package, name)
        where = getattr(thing, "__module__", "") or ""
        found[ROOMS[SYMBOLS.get(name) or where.split(".")[1]]].append(f"scgd.{name}")
    shown = set(package.__all__) & {"scipy_method"}  # a name that two modules export has one place
    for module, title in MODULES.items():
        names = [name for name in import_module(module).__all__ if name not in shown]
        found[title] += [f"{module}.{name}" for name in names]
        shown.update(names)
    for name, title in BESIDE.items():
        found[title].append(name)
    for names in found.values():
        names.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    return found


def directive(name: str) -> str:
    """Return the directive that documents an object."""
    module, _, attribute = name.rpartition(".")
    thing = getattr(import_module(module), attribute)
    if isclass(thing) and not isinstance(thing, GenericAlias):
        kind = "autoexception" if issubclass(thing, Exception) else "autoclass"
        return f".. {kind}:: {name}\n   :members:\n   :exclude-members: {ROUTING}\n"
    if isinstance(thing, GenericAlias):
        return f".. data:: {name}\n\n   A type: ``{thing}``.\n"
    if callable(thing):
        return f".. autofunction:: {name}\n"
    rows = ", ".join(f"``{row}``" for row in thing)
    return f".. data:: {name}\n\n   By name: {rows}.\n"


def used() -> dict[str, list[str]]:
    """Return the examples that use a public name, each as a link."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(EXAMPLES.glob("*.py")):
        tree = ast.parse(path.read_text())
        title = str(ast.get_docstring(tree)).splitlines()[0]
        for name in sorted(names_in(tree)):
            found[name].append(f":doc:`{title} </gallery/{path.stem}>`")
    return found


def gallery(links: list[str]) -> str:
    """Return the line that leads to examples."""
    return f"\nIn the gallery: {', '.join(links)}.\n" if links else ""


def names_in(tree: ast.AST) -> set[str]:
    """Return the full names of what a program imports from scgd, or calls as ``scgd.NAME``."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "scgd":
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("scgd."):
            found.add(ast.unparse(node))
    return found


def write(folder: Path) -> None:
    """Write a page per title and the page that lists them."""
    folder.mkdir(exist_ok=True)
    names, examples = [], used()
    for title, things in pages().items():
        name = title.lower().replace(":", "").replace(" ", "-")
        body = "\n".join(directive(thing) + gallery(examples.get(thing, [])) for thing in things)
        keep(folder / f"{name}.rst", f"{title}\n{'=' * len(title)}\n\n{body}")
        names.append(f"{title} <{name}>")
    tree = "\n".join(f"   {name}" for name in names)
    head = "API reference\n=============\n\nEvery public name, by room.\n\n"
    keep(folder / "index.rst", f"{head}.. toctree::\n   :maxdepth: 2\n\n{tree}\n")
    written = {f"{title.split(' <')[1][:-1]}.rst" for title in names} | {"index.rst"}
    for path in folder.glob("*.rst"):  # of a room that has another title now
        if path.name not in written:
            path.unlink()


def keep(path: Path, text: str) -> None:
    """Write a file unless it says that already, so that only what changed is built again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def setup(app) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them."""
    write(Path(app.srcdir) / "api")
    return {"parallel_read_safe": True}
