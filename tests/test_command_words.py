"""Nothing that a user can type ends in a traceback; places and names are checked before a run."""

import sys

import numpy as np
import pytest

from scgd.cli import main
from scgd_arena import command as arena

GOOD = """
import numpy as np
CALLS = []

def sphere(x):
    CALLS.append(1)
    return float(np.sum((x - 1.0) ** 2))

def loss(params):
    CALLS.append(1)
    return (params["a"] - 0.3) ** 2 + (params["kind"] == "b")

number = 3
"""
FILES = {
    "good.py": GOOD,
    "broken.py": "def f(x):\n    return (\n",
    "angry.py": "raise RuntimeError('no licence\\nfound')\n",
    "leaves.py": "import sys\nsys.exit('bye')\n",
    "lacks.py": "import a_package_that_is_not_there\n",
    "words.txt": "one two\n",
    "numbers.txt": "1 2\n3\n",
    "commas.csv": "1,2,3\n",
    "one.csv": "a\n1\n2\n3\n",
    "bad.npy": "not an array",
    "bad.toml": "a = [",
    "space.toml": '[a]\ntype = "float"\nlow = 0\nhigh = 1\n[kind]\ntype = "choice"\n'
    'values = ["a", "b"]\n',
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "x0.npy", np.array([1.0, 2.0]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("good", "broken", "angry", "leaves", "lacks"):
        sys.modules.pop(name, None)
    return tmp_path


def calls():
    return len(sys.modules["good"].CALLS) if "good" in sys.modules else 0


RUN = ["minimize", "good:sphere", "--dim", "3", "--max-evals", "60", "--no-progress"]
FROM = ["minimize", "good:sphere", "--max-evals", "60", "--no-progress"]
OWN = ["arena", "good:sphere", "--dim", "2", "--max-evals", "20"]
WRONG = [
    (["minimize", "broken:f", "--dim", "3"], "cannot import 'broken': '(' was never closed"),
    (["minimize", "angry:f", "--dim", "3"], "'angry' fails when it is imported: RuntimeError: no lic"),
    (["minimize", "leaves:f", "--dim", "3"], "'leaves' fails when it is imported: SystemExit: bye"),
    (["minimize", "lacks:f", "--dim", "3"], "cannot import 'lacks': No module named 'a_package"),
    (["minimize", ":f", "--dim", "3"], "must be given as MODULE:FUNCTION"),
    (["minimize", "..:f", "--dim", "3"], "'..'"),
    (["minimize", "good:number", "--dim", "3"], "has no function 'number'"),
    ([*RUN, "--out", "nowhere/out.json"], "--out: there is no folder nowhere"),
    ([*RUN, "--plot", "nowhere/p.html"], "--plot: there is no folder nowhere"),
    ([*RUN, "--plot", "p.png"], "--plot must end in .html, got p.png"),
    ([*RUN, "--status", "nowhere/s.html"], "--status: there is no folder nowhere"),
    ([*RUN, "--checkpoint", "nowhere/c.npz"], "--checkpoint: there is no folder nowhere"),
    ([*RUN, "--log", "nowhere/l.csv"], "--log: there is no folder nowhere"),
    ([*RUN, "--log", "log.txt"], "--log must end in .csv, got log.txt"),
    ([*RUN, "--out", "folder"], "--out: folder is not a file"),
    ([*RUN, "--out", "a.html", "--plot", "a.html"], "a.html is already in use by this command"),
    ([*RUN, "--method", "magic"], "method must be"),
    ([*RUN, "--catch", "Nothing"], "--catch must be the name of an exception"),
    ([*RUN, "--max-evals", "0"], "max_evals must be a whole number >= 1, got 0"),
    ([*RUN, "--bounds", "2", "1"], "bounds cross at coordinate 0"),
    ([*RUN, "--scale", "-1"], "scale must be positive"),
    ([*FROM, "--x0", "1,2,three"], "cannot read --x0 1,2,three"),
    ([*FROM, "--x0", "words.txt"], "cannot read --x0 words.txt"),
    ([*FROM, "--x0", "bad.npy"], "cannot read --x0 bad.npy"),
    ([*FROM, "--x0", "missing.txt"], "give numbers such as 1,2,3 or a file of them"),
    ([*FROM, "--x0", "folder"], "cannot read --x0 folder"),
    ([*FROM, "--space", "missing.toml"], "--space: cannot read the space in missing.toml"),
    ([*FROM, "--space", "bad.toml"], "bad.toml is no TOML file"),
    ([*OWN, "--methods", "auto,foo"], "--methods: 'foo' is not known"),
    ([*OWN, "--out", "one.csv"], "--out: one.csv is not a folder"),
    ([*OWN, "--out", "one.csv/deeper"], "--out: one.csv is not a folder"),
    (["arena", "angry:f", "--dim", "2", "--max-evals", "9"], "'angry' fails when it is imported"),
    (["arena", "good:sphere", "--x0", "1,b", "--max-evals", "9"], "cannot read --x0 1,b"),
    (["arena", "--methods", "auto,foo"], "--methods: 'foo' is not known"),
    (["fit", "one.csv"], "one.csv has no columns beside the target 'a'"),
    (["fit", "commas.csv", "--out", "nowhere/m.npz"], "--out: there is no folder nowhere"),
    (["fit", "commas.csv", "--plot", "nowhere/m.svg"], "--plot: there is no folder nowhere"),
]  # fmt: skip


@pytest.mark.parametrize("arguments, message", WRONG, ids=lambda value: str(value)[:60])
def test_one_line_and_nothing_run(arguments, message, folder, capsys):
    run = arena.main if arguments[0] == "arena" else main
    assert run(arguments[run is not main :]) in (1, 2)
    said = capsys.readouterr().err
    assert message in said and said.startswith("scgd: ") and said.count("\n") == 1
    assert calls() == 0


@pytest.mark.parametrize(
    "text, x0", [("0.5,0.25,-1", [0.5, 0.25, -1]), ("numbers.txt", [1, 2, 3]),
                 ("commas.csv", [1, 2, 3]), ("x0.npy", [1, 2])],
)  # fmt: skip
def test_where_to_start(text, x0, folder, capsys):
    assert main([*FROM, f"--x0={text}", "--seed", "0", "--log", "run.csv"]) == 0
    assert len((folder / "run.csv").read_text().splitlines()[0].split(",")) == 4 + len(x0)
    from scgd import minimize

    here = minimize(sys.modules["good"].sphere, x0, max_evals=60, seed=0)
    assert f"value    {here.fun:.8g}" in capsys.readouterr().out


def test_the_answer_is_printed_and_drawn(folder, capsys):
    assert main([*RUN, "--seed", "0", "--plot", "page.html", "--out", "out.json"]) == 0
    said = capsys.readouterr().out
    assert "x        [1" in said and "inputs   " in said and "plot: page.html" in said
    page = (folder / "page.html").read_text()
    assert "Value reached" in page and "Slice along" in page and "good:sphere" in page


def test_parameters_are_printed(folder, capsys):
    code = main(["minimize", "good:loss", "--space", "space.toml", "--max-evals", "40", "--seed", "0",
                 "--no-progress", "--plot", "page.html"])  # fmt: skip
    said = capsys.readouterr().out
    assert code == 0 and "kind=a" in said and "a=0." in said and "  x  " not in said
    assert "inputs   " in said and "Slice along a" in (folder / "page.html").read_text()


def test_a_picture_needs_plotly(folder, capsys, monkeypatch):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "plotly" else real(name, *a)
    )
    assert main([*RUN, "--plot", "page.html"]) == 1
    assert "pip install 'scgd[plot]'" in capsys.readouterr().err and calls() == 0
