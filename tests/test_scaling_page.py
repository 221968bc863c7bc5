"""The page of many workers shows what its rows and the simulation say."""

import runpy
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def scaling():
    return runpy.run_path(str(ROOT / "benchmarks" / "scaling.py"))


def test_page_and_picture_are_made_of_the_rows(scaling):
    for path, text in scaling["written"]():
        assert path.read_text() == text, "python benchmarks/scaling.py writes it anew"


def test_the_simulation_knows_what_arithmetic_knows(scaling):
    setting, rate = scaling["Setting"](10, 2.0), scaling["rate"]
    assert rate(setting) == pytest.approx(5.0)  # ten workers, two seconds each
    assert rate(replace(setting, message=0.5)) < 1.01  # a message out and one back
    assert rate(replace(setting, message=0.5, under_way=100, workers=100), 50) == pytest.approx(
        1, 0.1
    )
    assert rate(replace(setting, read=1e-7)) == pytest.approx(10 / 3)  # p = 10^7 takes a second
    late = replace(setting, slow=0.5, slowness=3.0)
    assert rate(late) < rate(replace(late, under_way=10)) < 5.0


def test_lost_workers_cost_what_they_did(scaling):
    simulate, calm = scaling["simulate"], scaling["Setting"](100, 2.0, under_way=100)
    fewer = simulate(replace(calm, deaths=0.1), 4000) / simulate(calm, 4000)
    assert 1.02 < fewer < 1.15  # half of the run with nine tenths of the workers
