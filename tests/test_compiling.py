"""Compiled code: an edit in any module that defines some starts a fresh cache."""

import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import scgd
from scgd.compiling import is_compiled


def test_modules_with_compiled_code_are_those_the_cache_watches():
    """The cache's checksum covers modules that import scgd.compiling or speak of a kernel."""
    for module in walk_packages(scgd.__path__, "scgd."):
        if not module.name.startswith("scgd.torch") and not module.name.endswith("__main__"):
            import_module(module.name)
    homes = {
        sys.modules[value.__wrapped__.__module__]
        for name, module in list(sys.modules.items())
        if name.startswith("scgd")
        for value in vars(module).values()
        if is_compiled(value)
    }
    assert len(homes) > 20
    for home in homes:
        source = Path(home.__file__).read_text()
        assert "scgd.compiling" in source or "kernel" in source, home
