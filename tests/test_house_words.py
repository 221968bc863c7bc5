"""The pages speak the field's words, in few of them, with numbers as people write them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
HOUSE = (
    "lost values?|ladders?|footing|walks?|slides?|crowds?|strides|contests?|arms?|races?|judges?|judged|verdicts?|"
    "leash|laws?|niches?|story|stories|recipes?|tellings?|grain|lanes|legs|bodies|never far|no more question|"
    "nobody controls|over a hair"
)
"""Words of our own, of which the field has better ones."""
GENERATED = {
    "ablation.md",
    "benchmarks.md",
    "arena-results.md",
    "scaling-results.md",
    "linear-results.md",
}
LONG = {*GENERATED, "paper-results.md", "torch-benchmarks.md"}
"""Pages of numbers; all others have at most so many words:"""
MOST = 1200
INCLUDED = {"changelog.md", "contributing.md", "security.md"}


def prose(page):
    """Return a page without programs, code and addresses."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)


def chosen(*without):
    names = INCLUDED.union(*without)
    return [pytest.param(page, id=page.name) for page in PAGES if page.name not in names]


@pytest.mark.parametrize("page", chosen(GENERATED))
def test_no_house_words(page):
    found = re.findall(rf"\b(?:{HOUSE})\b", prose(page), re.I)
    assert not found, f"{page.name}: {sorted(set(found))}"


@pytest.mark.parametrize("page", chosen())
def test_numbers_have_a_leading_zero(page):
    found = re.findall(r"(?<![\w.)\]])\.\d+", prose(page))
    assert not found, f"{page.name}: {found}"


@pytest.mark.parametrize("page", chosen(LONG))
def test_a_page_is_short(page):
    assert len(prose(page).split()) <= MOST, f"{page.name} has too many words"


@pytest.mark.parametrize("page", chosen(LONG, {"README.md", "index.md", "guide.md", "project.md"}))
def test_a_page_says_where_to_go_on(page):
    assert "## See also" in page.read_text() or page.name in {"faq.md", "fit.md"}
