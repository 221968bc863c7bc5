"""The site that ``make docs`` has built: links, scripts, and what a browser says about it."""

import re
import runpy
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parent.parent / "docs" / "_build" / "html"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(not SITE.exists(), reason="`make docs` has not built the site")
PAGES = sorted(
    page for page in SITE.rglob("*.html") if "_static" not in page.parts and page.name != "genindex.html"
)  # fmt: skip
LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href"}


class Parts(HTMLParser):
    """What a page defines, points to and loads."""

    def __init__(self):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(filter(None, (attrs.get("id"), attrs.get("name"))))
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag in LOADED and attrs.get(LOADED[tag]) and attrs.get("rel") != "canonical":
            self.loaded.append(attrs[LOADED[tag]])


def parts(page):
    parser = Parts()
    parser.feed(page.read_text())
    return parser


def test_pages_of_every_section_are_there():
    names = {str(page.relative_to(SITE)) for page in PAGES}
    assert {"index.html", "first-run.html", "choosing.html", "when-not.html", "faq.html"} <= names
    assert len([name for name in names if name.startswith("gallery/")]) > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(SITE)))
def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(page):
    found = parts(page)
    for target in found.loaded:
        assert not urlsplit(target).netloc, f"{target} is not served by the site"
    for target in (*found.links, *found.loaded):
        split = urlsplit(target)
        if split.scheme or split.netloc:
            continue
        path = (page.parent / unquote(split.path)).resolve() if split.path else page
        assert path.exists(), f"{target} leads nowhere"
        if split.fragment and path.suffix == ".html":
            assert unquote(split.fragment) in parts(path).anchors, f"{target} has no such place"


def test_pictures_share_one_plotly():
    pictures = sorted((SITE / "_static" / "pictures").glob("*.html"))
    assert len(pictures) > 10
    for picture in pictures:
        assert picture.stat().st_size < 1_000_000, f"{picture.name} carries a plotly of its own"
        assert 'src="plotly.min.js"' in picture.read_text()
    assert sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file()) < 60e6


def test_the_reference_has_every_public_name():
    written = "".join(page.read_text() for page in (SITE / "api").glob("*.html"))
    for names in runpy.run_path(str(SITE.parents[1] / "reference.py"))["pages"]().values():
        for name in names:
            assert f'id="{name}"' in written, f"{name} is not in the reference"


def look(page, width, folder):
    """Return what the console says when the page is opened from its file."""
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--enable-logging=stderr", "--v=0", "--virtual-time-budget=6000", f"--window-size={width},900",
        f"--user-data-dir={folder}", "--dump-dom", f"file://{page}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    said = re.findall(r"CONSOLE.*", done.stderr)
    return done.stdout, [line for line in said if not re.search(THEME, line)]


THEME = r"\[PST\]: (Changed to|Scrolled sidebar)"
"""What the theme tells the console when all is well."""

LOOKED_AT = (
    "index.html", "design.html", "paper.html", "gallery/index.html", "gallery/portfolio.html",
    "tutorial/black_box.html", "api/build-scgd-from-parts.html",
)  # fmt: skip


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_browser_has_nothing_to_complain_about(name, tmp_path):
    dom, console = look(SITE / name, 400, tmp_path)
    assert not console and "</html>" in dom


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_formulas_are_typeset_and_search_finds(tmp_path):
    dom, _ = look(SITE / "api" / "check-the-papers-theory.html", 1280, tmp_path)
    assert "mjx-container" in dom
    page = f"{SITE / 'search.html'}?q=musketeer"
    dom, _ = look(page, 1280, tmp_path)
    assert 'class="search"' in dom and "api/build-scgd-from-parts.html" in dom
