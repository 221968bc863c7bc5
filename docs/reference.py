"""The API reference: a page per thing one wants to do, written when the site is built."""

import ast
import inspect
from collections import defaultdict
from importlib import import_module
from inspect import isclass
from pathlib import Path
from types import GenericAlias
from typing import Any

EXAMPLES = Path(__file__).parent.parent / "examples"

GROUPS = {
    "Minimise a function": (
        "scgd.minimize", "scgd.results.Result", "scgd.evaluations.Evaluations", "scgd.Checkpoint",
        "scgd.CheckpointError", "scgd.METHODS",
    ),
    "Which inputs matter": ("scgd.screen", "scgd.Screening", "scgd.Screen"),
    "Ask and tell": ("scgd.Optimizer", "scgd.Trial"),
    "Say how it runs": ("scgd.Workers", "scgd.Failures", "scgd.Reporting", "scgd.Rows"),
    "Search a space": ("scgd.Space", "scgd.Float", "scgd.Int", "scgd.Choice"),
    "Build SCGD from parts": (
        "scgd.SCGD", "scgd.sampler.CoordinateSampler",
        "scgd.POLICIES", "scgd.Musketeer", "scgd.Uniform", "scgd.Full", "scgd.Adaptive",
        "scgd.RecentGains", "scgd.FixedWeights", "scgd.coordinate_smoothness",
        "scgd.GaussSouthwell", "scgd.GradientWeights", "scgd.policies.Policy",
        "scgd.ESTIMATORS", "scgd.ForwardDifference", "scgd.CentralDifference", "scgd.SPSA",
        "scgd.GaussianSmoothing", "scgd.SphereSmoothing", "scgd.FirstOrder",
        "scgd.STEPS", "scgd.SGD", "scgd.Momentum", "scgd.RMS", "scgd.Adam", "scgd.Learned",
        "scgd.Wiener", "scgd.steps.StepRule",
        "scgd.SCHEDULES", "scgd.Constant", "scgd.Linear", "scgd.InverseTime", "scgd.InverseLog",
        "scgd.SqrtOf", "scgd.Relative",
    ),
}  # fmt: skip
"""What one wants to do with a name of ``scgd`` itself, in the order of the page."""

MODULES = {
    "scgd.linear": "Fit linear models",
    "scgd.torch": "Train networks",
    "scgd.torch.blocks": "Train networks by blocks",
    "scgd.torch.blocks.trainers": "Train networks by blocks",
    "scgd.scipy": "From SciPy, Optuna, scikit-learn",
    "scgd.optuna": "From SciPy, Optuna, scikit-learn",
    "scgd.sklearn": "From SciPy, Optuna, scikit-learn",
    "scgd.strategies.asks": "Write a strategy",
    "scgd.strategies.budget": "Write a strategy",
    "scgd.strategies.drive": "Write a strategy",
    "scgd.theory": "Check the paper's theory",
    "scgd_paper.theory": "Check the paper's theory",
}
"""Public modules beside ``scgd`` itself, and the titles of their pages."""

BESIDE = {
    "scgd.results.Result": "Minimise a function",
    "scgd.evaluations.Evaluations": "Minimise a function",
    "scgd.sampler.CoordinateSampler": "Build SCGD from parts",
    "scgd.policies.Policy": "Build SCGD from parts",
    "scgd.steps.StepRule": "Build SCGD from parts",
    "scgd.linear.models.load_model": "Fit linear models",
    "scgd.linear.models.save_model": "Fit linear models",
    "scgd.linear.models.ModelError": "Fit linear models",
    "scgd.problem.Problem": "Write a strategy",
}
"""Public names of modules that are not public as a whole."""

DATA = {
    "scgd.METHODS": "The methods by name, for `method=`.",
    "scgd.POLICIES": "The policies by name, for `policy=`.",
    "scgd.ESTIMATORS": "The gradient estimators by name, for `estimator=`.",
    "scgd.STEPS": "The step rules by name, for `step=`.",
    "scgd.SCHEDULES": "The schedules by name, for `learning_rate=` and `radius=`.",
    "scgd.linear.LOSSES": "The losses by name, for `loss=`.",
    "scgd.torch.blocks.BLOCK_POLICIES": "The policies of blocks by name, for `policy=`.",
    "scgd.strategies.asks.Strategy": "The type of a strategy: a generator of questions.",
    "scgd.strategies.budget.TOL": "How close a deterministic search comes before it stops.",
}
"""What names without a docstring of their own stand for."""

ROUTING = "set_fit_request, set_score_request, set_partial_fit_request, set_predict_request"
"""Methods that scikit-learn adds and documents itself."""


def pages() -> dict[str, list[str]]:
    """Return the full names of all public objects by page title."""
    found: dict[str, list[str]] = {title: list(names) for title, names in GROUPS.items()}
    package = import_module("scgd")
    placed = {name for names in found.values() for name in names}
    for name in package.__all__:
        if f"scgd.{name}" not in placed and name != "scipy_method":
            raise ValueError(f"scgd.{name} has no place in GROUPS of docs/reference.py")
    shown = [thing_of(name) for name in placed]  # what two modules export has one place
    for module, title in MODULES.items():
        for name in import_module(module).__all__:
            thing = thing_of(f"{module}.{name}")
            if not any(thing is other for other in shown):
                found.setdefault(title, []).append(f"{module}.{name}")
                shown.append(thing)
    for name, title in BESIDE.items():
        if name not in placed:
            found[title].append(name)
    return found


def thing_of(name: str) -> Any:
    """Return what a full name stands for."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def summary(name: str) -> str:
    """Return the first line of what a name says of itself."""
    if name in DATA:
        return DATA[name]
    thing = thing_of(name)
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def contents(names: list[str]) -> str:
    """Return a table with a line per name, which leads to it."""
    rows = "".join(
        f"   * - :py:obj:`{name.removeprefix('scgd.')} <{name}>`\n     - {summary(name)}\n"
        for name in names
    )
    return f".. list-table::\n   :widths: 30 70\n\n{rows}\n"


def directive(name: str) -> str:
    """Return the directive that documents an object."""
    thing = thing_of(name)
    if isclass(thing) and not isinstance(thing, GenericAlias):
        kind = "autoexception" if issubclass(thing, Exception) else "autoclass"
        return f".. {kind}:: {name}\n   :members:\n   :exclude-members: {ROUTING}\n"
    if isinstance(thing, GenericAlias):
        return f".. data:: {name}\n\n   A type: ``{thing}``.\n"
    if callable(thing):
        return f".. autofunction:: {name}\n"
    if isinstance(thing, float):
        return f".. data:: {name}\n\n   {thing:g}\n"
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
    names, listed, examples = [], [], used()
    for title, things in pages().items():
        name = title.lower().replace(",", "").replace("'", "").replace(" ", "-")
        body = "\n".join(directive(thing) + gallery(examples.get(thing, [])) for thing in things)
        head = f"{title}\n{'=' * len(title)}\n\n{contents(things)}\n"
        keep(folder / f"{name}.rst", f"{head}{body}")
        names.append(f"{title} <{name}>")
        listed.append(f"{title}\n{'-' * len(title)}\n\n{contents(things)}")
    tree = "\n".join(f"   {name}" for name in names)
    head = "API reference\n=============\n\nEvery public name, by what one wants to do.\n\n"
    tree = f".. toctree::\n   :hidden:\n\n{tree}\n\n"
    keep(folder / "index.rst", head + tree + "\n".join(listed))
    written = {f"{title.split(' <')[1][:-1]}.rst" for title in names} | {"index.rst"}
    for path in folder.glob("*.rst"):  # of a title that is no more
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
