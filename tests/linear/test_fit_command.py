"""What ``scgd fit`` and ``scgd predict`` say when they cannot: one line, before the work."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scgd.cli import main
from scgd.linear import SCGDRegressor
from scgd.linear.models import save_model

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    table = pd.DataFrame({"x": x, "word": np.where(x > 0, "up", "down"), "y": 2 * x + 1})
    table.to_csv(path / "data.csv", index=False)
    table[["word"]].to_csv(path / "only.csv", index=False)
    table[["x"]].assign(c=1)[["c", "x"]].to_csv(path / "constant.csv", index=False)
    table.assign(y=1.5).to_csv(path / "flat.csv", index=False)
    table.assign(y=np.nan).to_csv(path / "blank.csv", index=False)
    table.assign(y=pd.date_range("2024-01-01", periods=40)).to_csv(path / "when.csv", index=False)
    table.iloc[:3].to_csv(path / "short.csv", index=False)
    table.drop(columns="word").to_csv(path / "lacking.csv", index=False)
    (path / "empty.csv").write_text("")
    (path / "blanks.csv").write_text("\n\n  \n")
    (path / "mark.csv").write_bytes("".encode("utf-16"))
    (path / "header.csv").write_text("a,b,c\n")
    (path / "ragged.csv").write_text("a,b\n1,2\n1,2,3\n")
    (path / "wide.csv").write_text("a,b\n1,2,3\n4,5,6\n")
    (path / "quote.csv").write_text('a,b\n1,"2\n3,4\n')
    (path / "twice.csv").write_text("a ,a,b\n1,2,3\n")
    (path / "binary.csv").write_bytes(bytes(range(256)) * 20)
    (path / "fake.parquet").write_bytes(b"PAR1 no")
    (path / "fake.csv.gz").write_bytes(b"no gzip")
    (path / "bad.svm").write_text("1 a:b\n")
    (path / "nan.svm").write_text("1 1:nan\n0 1:2\n1 1:3\n0 1:1\n")
    (path / "good.svm").write_text("1 1:2\n0 2:3\n")
    (path / "model.npz").write_bytes(b"not a model")
    save_model(path / "python.npz", SCGDRegressor().fit([[0.0], [1.0]], [0.0, 1.0]))
    (path / "place").mkdir()
    return path


FIT = [
    (["missing.csv"], 1, "there is no file"),
    (["place"], 1, "is not a file of data"),
    (["empty.csv"], 1, "it is empty"),
    (["blanks.csv"], 1, "it is empty"),
    (["mark.csv"], 1, "it is empty"),
    (["header.csv"], 1, "a header but no rows"),
    (["ragged.csv"], 1, "cannot read"),
    (["wide.csv"], 1, "more fields than the first"),
    (["quote.csv"], 1, "cannot read"),
    (["twice.csv"], 1, "two columns are called 'a'"),
    (["binary.csv"], 1, "not a text file"),
    (["fake.parquet"], 1, "cannot read"),
    (["fake.csv.gz"], 1, "cannot read"),
    (["bad.svm"], 1, "cannot read"),
    (["nan.svm", "--cv", "2"], 1, "values that are not finite"),
    (["only.csv"], 1, "no columns beside the target 'word'"),
    (["constant.csv"], 1, "no column is left to learn from: 'c' is constant"),
    (["flat.csv"], 1, "is 1.5 in all rows; choose another --target"),
    (["blank.csv"], 1, "is empty in all rows"),
    (["when.csv"], 1, "too many for labels"),
    (["short.csv"], 1, "3 rows are too few for --cv 5"),
    (["data.csv", "--target", "z"], 2, "no column 'z'"),
    (["data.csv", "--groups", "wrd"], 2, "did you mean 'word'?"),
    (["data.csv", "--groups", "word"], 2, "has 2 groups"),
    (["data.csv", "--groups", "y"], 2, "cannot have another part"),
    (["data.csv", "--time-ordered", "word"], 1, "neither numbers nor dates"),
    (["data.csv", "--drop", "q"], 2, "no column 'q'"),
    (["data.csv", "--drop", "x", "--drop", "word"], 1, "no columns beside the target"),
    (["data.csv", "--loss", "logistic"], 1, "too many for labels; use --task regression"),
    (["data.csv", "--target", "word", "--loss", "squared"], 1, "holds words ('"),
    (["data.csv", "--loss", "hinge", "--task", "regression"], 2, "--loss hinge is for class"),
    (["data.csv", "--alpha", "-1"], 2, "--alpha must be auto or a number of at least 0"),
    (["data.csv", "--alpha", "nan"], 2, "--alpha must be"),
    (["data.csv", "--alpha", "inf"], 2, "--alpha must be"),
    (["data.csv", "--alpha", "some"], 2, "--alpha must be"),
    (["data.csv", "--cv", "1"], 2, "--cv must be a whole number of at least 2"),
    (["data.csv", "--seed", "-1"], 2, "--seed must be"),
    (["data.csv", "--seed", str(2**40)], 2, "--seed must be"),
    (["data.csv", "--jobs", "0"], 2, "--jobs must be"),
    (["data.csv", "--max-levels", "0"], 2, "--max-levels must be"),
    (["data.csv", "--sep", "::"], 2, "--sep must be one character"),
    (["data.csv", "--out", "nowhere/m.npz"], 2, "there is no folder"),
    (["data.csv", "--out", "place"], 2, "--out must end in .npz"),
    (["data.csv", "--out", "m.pkl"], 2, "--out must end in .npz"),
    (["data.csv", "--plot", "m.png"], 2, "--plot must end in .html or .svg"),
    (["data.csv", "--plot", "nowhere/m.svg"], 2, "there is no folder"),
]
PREDICT = [
    (["none.npz", "data.csv"], 1, "there is no model"),
    (["model.npz", "data.csv"], 1, "is not a model saved by scgd"),
    (["data.csv", "data.csv"], 1, "is not a model saved by scgd"),
    (["place", "data.csv"], 2, "is not an ordinary file"),
    (["python.npz", "data.csv"], 1, "saved from Python"),
    (["good.npz", "missing.csv"], 1, "there is no file"),
    (["good.npz", "lacking.csv"], 1, "no column 'word'"),
    (["good.npz", "good.svm"], 1, "was fitted to named columns"),
    (["good.npz", "data.csv", "--out", "nowhere/p.csv"], 2, "there is no folder"),
    (["good.npz", "data.csv", "--out", "data.csv"], 2, "already in use"),
    (["good.npz", "data.csv", "--out", "p.npz"], 2, "--out must end in .csv"),
    (["good.npz", "data.csv", "--sep", ""], 2, "sep must not be empty"),
]
ROWS = [("fit", *row) for row in FIT] + [("predict", *row) for row in PREDICT]


@pytest.mark.parametrize(
    ("command", "words", "code", "message"), ROWS, ids=[" ".join([r[0], *r[1]]) for r in ROWS]
)
def test_what_cannot_be_done_is_said_in_one_line(
    command, words, code, message, folder, monkeypatch, capsys
):
    monkeypatch.chdir(folder)
    if "good.npz" in words and not (folder / "good.npz").exists():
        assert main(["fit", "data.csv", "--alpha", "1", "--cv", "2", "--out", "good.npz"]) == 0
    before = sorted(folder.iterdir())
    capsys.readouterr()
    assert main([command, *words]) == code
    told = capsys.readouterr().err.strip()
    assert message in told and told.startswith("scgd: ") and "\n" not in told
    assert sorted(folder.iterdir()) == before


CELLS = st.one_of(
    st.text(max_size=5),
    st.sampled_from(["1", "2.5", "-3e300", "", "NA", "2024-02-30", "1,5", "inf", '"', "\t", ";"]),
)


@settings(max_examples=60)
@given(
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=12),
    sep=st.sampled_from([",", ";", "\t", "|"]),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]),
)
def test_no_text_makes_a_traceback(rows, sep, encoding, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "any.csv"
    text = "\n".join(sep.join(row) for row in rows)
    path.write_bytes(text.encode(encoding, errors="ignore"))
    assert main(["fit", str(path), "--alpha", "1", "--cv", "2"]) in (0, 1, 2)
