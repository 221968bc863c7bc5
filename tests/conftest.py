"""Hypothesis without deadlines, and the same examples every time; Ctrl-C means what it always does."""

import os
import signal

from hypothesis import settings

settings.register_profile("scgd", deadline=None, derandomize=True, print_blob=False)
settings.load_profile("scgd")

# A shell starts what runs in the background with SIGINT ignored: tests of interrupts would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config, items):
    """Leave out scikit-learn's checks of the array API where SciPy's is off: `make test-doors` runs them."""
    if not os.environ.get("SCIPY_ARRAY_API"):
        away = [item for item in items if "array_api" in item.name]
        config.hook.pytest_deselected(items=away)
        items[:] = [item for item in items if "array_api" not in item.name]
