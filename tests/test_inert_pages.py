"""Pages of a run in a real browser: no name, title, member or message is ever run as script."""

import numpy as np
import pytest

import scgd
from browser import CHROMIUM, Browser
from scgd import minimize
from scgd.cli import main
from scgd.plots.figure import page
from scgd.results import Result
from scgd.status import StatusFile

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
EVIL = (
    "\"'><img src=x onerror='window.caught=1'></title></style></svg></script>"
    "<script>window.caught=2</script><svg onload=window.caught=3><a href=javascript:caught=4>&amp;"
)


@pytest.fixture(scope="module")
def evil():
    """A result with every text that a page shows replaced."""
    found = minimize(
        lambda x: float(np.sum((x - 1.0) ** 2)), np.zeros(5), scale=1.0, method="musketeer",
        max_evals=600, seed=0, reporting=scgd.Reporting(record=True))  # fmt: skip
    table = found.evaluations
    table.member = np.array([f"{EVIL}{name}" for name in table.member])
    result = Result(found, table=lambda: table)
    result.names, result.message = [EVIL + str(k) for k in range(5)], EVIL
    result.members = [(EVIL, 600)]
    return result


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("profile"), 1280, 900)
    yield found
    found.close()


def shown(browser, path):
    """Open a page, let it draw, follow its links, and return its words."""
    browser.errors.clear()
    browser.open(path)
    browser.evaluate("window.scrollTo(0, 1e6)")
    browser.evaluate("for (const e of document.querySelectorAll('a')) e.click()")
    browser.settle()
    assert browser.evaluate("window.caught === undefined")
    assert browser.evaluate("document.querySelectorAll('img[src=x], [onload]').length") == 0
    assert [
        error for error in browser.errors if "WebGL" not in error and "GL Driver" not in error
    ] == []
    return browser.evaluate("document.documentElement.textContent").replace("\u00a0", " ")


@pytest.mark.parametrize("state", ["running", "ended", EVIL])
def test_a_status_page_is_inert_in_a_browser(evil, browser, tmp_path, state):
    path = tmp_path / "run.html"
    StatusFile(path, EVIL, 600).write(evil, state)
    words = shown(browser, path)
    assert words.count("<img src=x onerror=") >= 3  # title, member, inputs: letter by letter
    assert "Most relevant inputs" in words and "Value reached" in words


@pytest.mark.slow
def test_a_page_of_pictures_is_inert_in_a_browser(evil, browser, tmp_path):
    pytest.importorskip("plotly")
    path = tmp_path / "pictures.html"
    path.write_text(page(evil, EVIL))
    assert "<img src=x onerror=" in shown(browser, path)


@pytest.mark.slow
def test_a_page_of_a_model_is_inert_in_a_browser(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = [EVIL.replace('"', '""') + str(k) for k in range(3)]
    rows = [",".join(f'"{name}"' for name in [*names, EVIL.replace('"', '""')])]
    rows += [",".join(f"{v:.3f}" for v in rng.standard_normal(4)) for _ in range(60)]
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    assert main(["fit", "table.csv", "--cv", "2", "--plot", "model.html"]) == 0
    assert "<img src=x onerror=" in shown(browser, tmp_path / "model.html")
