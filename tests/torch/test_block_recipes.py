"""The programs in docs/blocks.md run as they are printed."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

PAGE = Path(__file__).parents[2] / "docs" / "blocks.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
TRAINERS = ("transformers", "lightning", "accelerate")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_of_the_page_run(number, capsys):
    for package in TRAINERS:
        if re.search(rf"^(import|from) {package}", PROGRAMS[number], re.MULTILINE):
            state = pytest.importorskip(package)
            if package == "accelerate":  # accelerators of one process share their state
                state.state.GradientState._reset_state()
                state.state.AcceleratorState._reset_state(True)
    exec(
        compile(PROGRAMS[number], f"docs/blocks.md program {number}", "exec"), {"__name__": "main"}
    )


def test_the_page_has_programs():
    assert len(PROGRAMS) == 2
