"""The site that ``make docs`` has built: links, scripts, and what a browser says about it."""

import runpy
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from browser import CHROMIUM, Browser

SITE = Path(__file__).parent.parent / "docs" / "_build" / "html"
AXE = find_spec("axe_core_python")
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


def test_the_site_is_small():
    assert (
        sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file()) < 40e6
    )  # most of it are the fonts and scripts of formulas


def test_the_reference_has_every_public_name():
    written = "".join(page.read_text() for page in (SITE / "api").glob("*.html"))
    for names in runpy.run_path(str(SITE.parents[1] / "reference.py"))["pages"]().values():
        for name in names:
            assert f'id="{name}"' in written, f"{name} is not in the reference"


@pytest.fixture(scope="module")
def phone(tmp_path_factory):
    """A browser as wide as a phone."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    browser = Browser(tmp_path_factory.mktemp("phone"), 400, 900)
    yield browser
    browser.close()


@pytest.mark.skipif(AXE is None, reason="needs axe-core-python (pip install '.[docs]')")
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(SITE)))
def test_a_page_can_be_read_by_everyone_in_light_and_dark(phone, page):
    """What Lighthouse asks: contrast, names of pictures and fields, nothing wider than a phone, no errors."""
    phone.errors.clear()
    phone.open(page)
    axe = Path(AXE.origin).with_name("axe.min.js").read_text()
    phone.evaluate(f"{axe};0")
    for look in ("light", "dark"):
        phone.evaluate(f"document.documentElement.dataset.theme = '{look}'")
        phone.settle()
        wide = phone.evaluate("document.documentElement.scrollWidth")
        assert wide <= 400, f"{look}: {wide} pixels wide"
        assert not phone.evaluate(FOUND), look
    assert not phone.errors


FOUND = """
axe.run({runOnly: ["wcag2a", "wcag2aa"]}).then((found) => found.violations.map((rule) =>
  rule.id + ": " + rule.nodes.slice(0, 3).map((node) => node.target + " " + node.html.slice(0, 120))))
"""
"""What axe, the checker inside Lighthouse, finds wrong with the page."""

INSIDE = """
[...document.querySelectorAll("text")].filter((text) => {
  const [box, all] = [text.getBoundingClientRect(), document.documentElement.getBoundingClientRect()];
  return box.left < all.left || box.right > all.right || box.top < all.top || box.bottom > all.bottom;
}).map((text) => text.textContent)
"""
"""The words of a picture that are cut at its edge."""


@pytest.mark.parametrize(
    "picture", sorted((SITE / "_images").glob("*.svg")), ids=lambda path: path.stem
)
def test_a_picture_is_whole_and_twice_as_wide_as_high(phone, picture):
    phone.open(picture)
    assert phone.evaluate(INSIDE) == []
    width, height = phone.evaluate(
        """document.documentElement.getAttribute("viewBox").split(" ").slice(2).map(Number)"""
    )
    assert picture.stem.startswith("sphx") <= (width == 2 * height)


def test_formulas_are_typeset_and_search_finds(phone):
    phone.open(SITE / "api" / "check-the-papers-theory.html")
    phone.evaluate("MathJax.startup.promise.then(() => 0)")
    assert phone.evaluate("document.querySelectorAll('mjx-container').length")
    phone.call("Page.navigate", url=(SITE / "search.html").as_uri() + "?q=musketeer")
    for _ in range(20):
        phone.settle()
        if found := phone.evaluate("document.querySelector('ul.search')?.innerHTML"):
            break
    assert "api/build-scgd-from-parts.html" in found
