"""Where a source file can be changed, and into what: one small change each.

Changes are made to the text between two offsets, so a mutant differs from its source in nothing
else. Decorators, annotations, messages and docstrings are left alone.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OPERATORS: dict[type, tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"), ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
COMPARISONS: dict[type, tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
OPPOSITES = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all",
    "all": "any",
}  # fmt: skip
SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Return, ast.With)
EXTREME = 1e100
"""Guards against overflow: twice such a number is as good as it is."""


@dataclass(frozen=True)
class Mutant:
    """One change: the bytes from ``start`` to ``end`` become ``new``."""

    file: str
    line: int
    start: int
    end: int
    kind: str
    old: str
    new: str
    text: str
    column: int
    """Counted from the first letter of the line."""

    @property
    def change(self) -> str:
        """What becomes what."""
        return f"{self.old} -> {self.new}"

    @property
    def name(self) -> tuple[str, str, int, str]:
        """What it is called in the list of equivalents, wherever its line stands."""
        return self.file, self.text, self.column, self.change

    @property
    def key(self) -> str:
        """Its name among the mutants of a file."""
        return f"{self.start}:{self.kind}:{self.change}"

    def of(self, source: bytes) -> bytes:
        """Return the changed source."""
        return source[: self.start] + self.new.encode() + source[self.end :]


class Finder:
    """Collects the changes that one file offers."""

    def __init__(self, path: Path, root: Path) -> None:
        self.file = path.relative_to(root).as_posix()
        self.source = path.read_bytes()
        self.lines = self.source.splitlines(keepends=True)
        self.offsets = [0]
        for line in self.lines:
            self.offsets.append(self.offsets[-1] + len(line))
        self.mutants: list[Mutant] = []
        self.visit(ast.parse(self.source), in_function=False)

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Where a node begins."""
        return self.offsets[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Where a node ends."""
        return self.offsets[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    def add(self, kind: str, start: int, end: int, new: str) -> None:
        """Note a change."""
        line = next(i for i in range(len(self.lines)) if self.offsets[i + 1] > start)
        old = " ".join(self.source[start:end].decode().split())
        text = self.lines[line].decode()
        column = start - self.offsets[line] - (len(text) - len(text.lstrip()))
        place = (self.file, line + 1, start, end)
        self.mutants.append(Mutant(*place, kind, old, new, text.strip(), column))

    def between(self, left: ast.expr, right: ast.expr, kind: str, old: str, new: str) -> None:
        """Note a change of what stands between two operands."""
        first, last = self.end(left), self.start(right)
        at = self.source[first:last].find(old.encode())
        if at >= 0:
            self.add(kind, first + at, first + at + len(old), new)

    def visit(self, node: ast.AST, in_function: bool) -> None:
        """Walk a tree."""
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        self.offer(node)
        if in_function and isinstance(node, SIMPLE) and not nothing(node):
            self.add("return", self.start(node), self.end(node), "return")
        inside = in_function or isinstance(node, ast.FunctionDef)
        for child in children(node):
            self.visit(child, inside)

    def offer(self, node: ast.AST) -> None:
        """Note the changes of one node itself."""
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            self.between(node.left, node.right, "operator", *OPERATORS[type(node.op)])
        elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
            old, new = OPERATORS[type(node.op)]
            self.between(node.target, node.value, "operator", old + "=", new + "=")
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                self.between(left, right, "operator", *OPERATORS[type(node.op)])
        elif isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for left, right, op in zip(operands, operands[1:], node.ops, strict=False):
                self.between(left, right, "comparison", *COMPARISONS[type(op)])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            self.add("sign", self.start(node), self.start(node.operand), "")
        elif isinstance(node, ast.Constant):
            self.offer_constant(node)
        elif isinstance(node, ast.Call):
            self.offer_call(node.func)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            first, last = self.start(node.test), self.end(node.test)
            self.add("condition", first, last, f"(not ({self.source[first:last].decode()}))")

    def offer_constant(self, node: ast.Constant) -> None:
        """Note another number, or the other truth value."""
        value = node.value
        if isinstance(value, bool):
            new = str(not value)
        elif isinstance(value, int):
            new = str(value + 1)
        elif isinstance(value, float) and 1 / EXTREME < abs(value) < EXTREME:
            new = repr(2 * value)
        elif value == 0.0 and isinstance(value, float):
            new = "1.0"
        else:
            return
        self.add("constant", self.start(node), self.end(node), new)

    def offer_call(self, called: ast.expr) -> None:
        """Note the opposite of min, max, any and all."""
        name = getattr(called, "id", getattr(called, "attr", ""))
        if name in OPPOSITES:
            last = self.end(called)
            self.add("operator", last - len(name), last, OPPOSITES[name])


def nothing(node: ast.stmt) -> bool:
    """Whether a statement is a bare return."""
    return isinstance(node, ast.Return) and (
        node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
    )


def children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands below a node, without decorators and annotations."""
    for name, value in ast.iter_fields(node):
        if name in ("decorator_list", "annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


def sample(path: Path, root: Path, n: int, seed: int) -> list[Mutant]:
    """Return a seeded sample of the changes of a file, in the order of its lines.

    A larger sample contains the smaller ones: what was found for those is used again.
    """
    found = Finder(path, root).mutants
    random.Random(f"{seed}:{path.relative_to(root).as_posix()}").shuffle(found)
    return sorted(found[:n], key=lambda mutant: (mutant.start, mutant.kind))
