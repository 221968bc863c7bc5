"""Run the Python of a page of the docs."""

import re


def run_page(path):
    """Execute every ``python`` block of a page, in order, and return the names it defines."""
    names = {"__name__": path.stem.replace("-", "_")}
    for block in re.findall(r"^```python\n(.*?)^```", path.read_text(), re.S | re.M):
        exec(compile(block, str(path), "exec"), names)
    return names
