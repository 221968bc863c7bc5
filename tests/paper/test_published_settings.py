"""What "published" means, pinned: the settings that made the published curves, panel by panel.

``python tests/paper/test_published_settings.py`` writes the table anew; its difference is what a change
of the settings means.
"""

import json
from pathlib import Path

import pytest

from scgd_paper.registry import EXPERIMENTS

TABLE = Path(__file__).with_name("published_settings.json")
PUBLISHED = {e.id: e.panels["published"] for e in EXPERIMENTS.values() if "published" in e.panels}


def described(panel):
    """Return all that decides a panel's numbers; methods by name."""
    return {
        "problem": repr(panel.problem),
        "passes": panel.n_passes,
        "every": panel.every,
        "runs": panel.n_runs,
        "methods": {method.name: repr(method) for method in panel.methods},
    }


def table():
    """Return the table; the methods that many panels share stand there once."""
    methods, panels = [], {}
    for name, all_of in PUBLISHED.items():
        for panel in all_of:
            row = described(panel)
            for which in row["methods"].values():
                if which not in methods:
                    methods.append(which)
            row["methods"] = [methods.index(which) for which in row["methods"].values()]
            panels[f"{name}/{panel.name}"] = row
    return {"methods": methods, "panels": panels}


def test_the_table_has_every_panel():
    known = json.loads(TABLE.read_text())["panels"]
    assert list(known) == [
        f"{name}/{panel.name}" for name in PUBLISHED for panel in PUBLISHED[name]
    ]


@pytest.mark.parametrize("name", PUBLISHED)
def test_settings_are_those_that_were_published(name):
    known = json.loads(TABLE.read_text())
    for panel in PUBLISHED[name]:
        row = known["panels"][f"{name}/{panel.name}"]
        methods = [known["methods"][i] for i in row["methods"]]
        found = described(panel)
        assert list(found.pop("methods").values()) == methods
        assert found == {key: row[key] for key in found}


if __name__ == "__main__":
    found = table()
    rows = [
        f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}"
        for k, v in found["panels"].items()
    ]
    methods = [f"  {json.dumps(method, ensure_ascii=False)}" for method in found["methods"]]
    TABLE.write_text(
        '{"methods": [\n'
        + ",\n".join(methods)
        + '\n],\n"panels": {\n'
        + ",\n".join(rows)
        + "\n}}\n"
    )
