"""The programs in docs/torch.md run as they are printed."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

PAGE = Path(__file__).parents[2] / "docs" / "torch.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_of_the_manual_run(number):
    needs = {"lightning": ["lightning"], "transformers": ["transformers", "accelerate"]}
    for first, packages in needs.items():
        if re.search(rf"^(import|from) {first}", PROGRAMS[number], re.MULTILINE):
            for package in packages:
                pytest.importorskip(package)
    exec(compile(PROGRAMS[number], f"docs/torch.md program {number}", "exec"), {"__name__": "main"})


def test_the_manual_has_programs():
    assert len(PROGRAMS) == 2
