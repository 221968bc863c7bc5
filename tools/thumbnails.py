"""Take the kept pictures of the gallery from the site that ``make docs`` has built.

``python tools/thumbnails.py [NAME ...]`` opens every picture in headless Chromium, narrow, so that
its first panel fills the thumbnail, and writes docs/images/gallery/NAME.png.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
PICTURES = DOCS / "_build" / "html" / "_static" / "pictures"
SIZE = (500, 360)


def take(page: Path, place: Path, size: tuple[int, int]) -> None:
    """Write what a browser window of that size shows of a page."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("needs Chromium")
    with tempfile.TemporaryDirectory() as folder:
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--disable-background-networking", "--virtual-time-budget=8000",
            f"--user-data-dir={folder}", f"--window-size={size[0]},{size[1]}",
            f"--screenshot={place}", page.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    smaller(place)


def smaller(place: Path) -> None:
    """Keep a picture with a palette: a fraction of the bytes, and nobody sees it."""
    from PIL import Image

    with Image.open(place) as image:
        image.convert("RGB").quantize(64).save(place, optimize=True)


def main() -> None:
    """Take all pictures, or those named."""
    pages = sorted(PICTURES.glob("*.html"))
    wanted = sys.argv[1:] or [page.stem for page in pages]
    for page in pages:
        if page.stem in wanted:
            print(page.stem, flush=True)
            take(page, DOCS / "images" / "gallery" / f"{page.stem}.png", SIZE)


if __name__ == "__main__":
    main()
