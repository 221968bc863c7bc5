"""Shared set-up: a numba cache folder named by the sources, before anything compiles."""

import hashlib
import os
from pathlib import Path

root = Path(__file__).resolve().parents[1]
if "NUMBA_CACHE_DIR" not in os.environ:
    digest = hashlib.sha256()
    for path in sorted((root / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    os.environ["NUMBA_CACHE_DIR"] = str(root / ".numba-cache" / digest.hexdigest()[:16])

from hypothesis import settings  # noqa: E402

settings.register_profile("scgd", deadline=None, derandomize=True, print_blob=False)
settings.load_profile("scgd")
