"""`make mutants` looks at every room, with tests that exist."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "mutants"))
from groups import GROUPS  # noqa: E402

sys.path.pop(0)
FRONT = {
    "__init__.py", "__main__.py", "typing.py", "compiling.py", "errors.py", "cli.py", "blas.py",
}  # fmt: skip
"""Files without formulas."""


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_groups_have_files_and_tests(group):
    assert group.files(ROOT)
    assert all((ROOT / name).is_file() for name in group.tests)


@pytest.mark.parametrize(
    "room",
    ["scgd/policies", "scgd/steps", "scgd/descent", "scgd/strategies", "scgd/run",
     "scgd/constraints", "scgd/spaces", "scgd/linear", "scgd/linear/tables", "scgd/torch",
     "scgd/torch/blocks", "scgd_paper", "scgd_paper/linear",
     "scgd_paper/theory", "scgd_arena", "scgd_arena/peers"],
)  # fmt: skip
def test_every_room_is_looked_at(room):
    seen = {name for group in GROUPS for name in group.files(ROOT)}
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / "src" / room).glob("*.py")}
    assert {name for name in there - seen if Path(name).name not in FRONT} == set()
