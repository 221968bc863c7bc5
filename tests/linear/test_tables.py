"""``scgd fit`` and ``scgd predict`` on files as people have them, one row each."""

import re
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_diabetes

from scgd.cli import main

pd = pytest.importorskip("pandas")
N = 240


def base():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(50, 10, N).round(2), "age": rng.integers(0, 80, N)})
    colours = np.array(["red", "green", "blue"])
    table["colour"] = colours[rng.integers(0, 3, N)]
    noise = rng.normal(size=N)
    table["price"] = table["size"] * 2 + 30 * (table["colour"] == "red") + noise
    return table


def sorted_file(path):
    base().sort_values("price").to_csv(path, index=False)


def semicolons(path):
    base().to_csv(path, index=False, sep=";", decimal=",")


def tabs(path):
    base().to_csv(path, index=False, sep="\t")


def bars(path):
    base().to_csv(path, index=False, sep="|")


def identifiers(path):
    table = base()
    table.insert(0, "customer", [f"C-{7919 * k % 100_003:06d}" for k in range(N)])
    table.to_csv(path, index=False)


def row_numbers(path):
    base().to_csv(path)


def many_shops(path):
    table = base()
    table.insert(0, "shop", [f"shop {k % 110}" for k in range(N)])
    table.to_csv(path, index=False)


def dates(path):
    table, day = base(), np.arange(N) * 5
    table.insert(0, "day", pd.Timestamp("2019-03-01") + pd.to_timedelta(day, "D"))
    table["price"] += 0.05 * day + 40 * np.sin(2 * np.pi * day / 365.25)
    table.to_csv(path, index=False)


def german_dates(path):
    dates(path)
    table = pd.read_csv(path)
    table["day"] = pd.to_datetime(table["day"]).dt.strftime("%d.%m.%Y")
    table.to_csv(path, index=False)


def gaps(path):
    table = base()
    table.loc[::11, "size"] = np.nan
    table.loc[::7, "colour"] = None
    table.loc[5:7, "price"] = np.nan
    table.to_csv(path, index=False)


def question_marks(path):
    table = base()
    table["size"] = table["size"].astype(str).where(np.arange(N) % 13 > 0, "?")
    table["age"] = table["age"].astype(str).where(np.arange(N) != 3, "old")
    table.to_csv(path, index=False)


def counts(path):
    table = base().drop(columns="price")
    table["visits"] = np.clip((table["size"] - 30) / 3, 0, 14).round().astype(int)
    table.to_csv(path, index=False)


def unicode_names(path):
    table = base().rename(columns={"size": "größe", "colour": "цвет", "price": "价格 <b>"})
    table.to_csv(path, index=False)


def quoted_commas(path):
    table = base()
    table["colour"] = table["colour"] + ', "very"'
    table.rename(columns={"size": "size, cm"}).to_csv(path, index=False)


def byte_order_mark(path):
    base().iloc[:, ::-1].to_csv(path, index=False, encoding="utf-8-sig")


def latin(path):
    table = base().replace({"colour": {"green": "grün"}})
    path.write_bytes(table.to_csv(index=False).encode("latin-1"))


def utf16(path):
    path.write_bytes(base().to_csv(index=False).encode("utf-16"))


def one_feature(path):
    base()[["size", "price"]].to_csv(path, index=False)


def constants(path):
    table = base()
    table.insert(0, "country", "de")
    table.insert(0, "version", 3)
    table.insert(0, "remarks", np.nan)
    table.to_csv(path, index=False)


def no_header(path):
    base()[["size", "age", "price"]].to_csv(path, index=False, header=False)


def money(path):
    table = base()
    table["size"] = [f"${value:,.2f}" for value in 1000 * table["size"]]
    table.to_csv(path, index=False)


def labels(path):
    table = base()
    table["price"] = np.where(table["price"] > 110, "dear", "cheap")
    table.to_csv(path, index=False)


def zero_one(path):
    table = base()
    table["price"] = (table["price"] > 110).astype(int)
    table.to_csv(path, index=False)


def truths(path):
    table = base()
    table["price"] = table["price"] > 110
    table.insert(0, "new", np.arange(N) % 3 == 0)
    table.to_csv(path, index=False)


# file, what fit is told, what it must say, R2 or accuracy it must reach, columns of the matrix
FILES = [
    (sorted_file, [], ["regression of 'price' with squared loss", "(shuffled)"], 0.95, 5),
    (semicolons, [], ["separated by semicolons", "decimal commas"], 0.95, 5),
    (tabs, [], ["separated by tabs"], 0.95, 5),
    (bars, [], ["separated by bars"], 0.95, 5),
    (identifiers, [], ["'customer' holds 240 different words", "like an identifier"], 0.95, 5),
    (row_numbers, [], ["has no name and counts the rows"], 0.95, 5),
    (many_shops, [], ["'shop' holds 110 different words in 240 cells; they are hashed"], 0.9, 261),
    (many_shops, ["--high-cardinality", "drop"], ["left out"], 0.95, 5),
    (many_shops, ["--max-levels", "110"], ["regression"], 0.9, 115),
    (dates, [], ["'day' holds dates; they become days and waves of the year"], 0.9, 10),
    (german_dates, [], ["written as %d.%m.%Y; they become days"], 0.9, 10),
    (gaps, [], ["'size': 22 of 237 cells are missing", "missing in 3 of 240 rows"], 0.7, 7),
    (question_marks, [], ["'size': 19 of 240", "'age': 1 cells are no numbers"], 0.8, 7),
    (counts, [], ["regression", "with 15 values; if these are labels say --task"], 0.9, 5),
    (counts, ["--task", "classification"], ["classification of 'visits'"], 0.2, 5),
    (unicode_names, [], ["regression of '价格 <b>'", "größe", "цвет = red"], 0.95, 5),
    (quoted_commas, [], ["size, cm", 'colour = red, "very"'], 0.95, 5),
    (byte_order_mark, ["--target", "price"], ["regression"], 0.95, 5),
    (latin, [], ["is not UTF-8; read as cp1252", "grün"], 0.95, 5),
    (utf16, [], ["regression"], 0.95, 5),
    (one_feature, [], ["regression"], 0.5, 1),
    (constants, [], ["'version' is constant", "'remarks' is empty"], 0.95, 5),
    (no_header, [], ["columns are named x0, x1"], 0.5, 2),
    (money, [], ["regression"], 0.95, 5),
    (labels, [], ["classification of 'price' with logistic loss (the target holds words)"], 0.9, 5),
    (labels, ["--loss", "hinge"], ["hinge loss"], 0.9, 5),
    (zero_one, [], ["classification", "the target has two values"], 0.9, 5),
    (zero_one, ["--task", "regression"], ["regression", "as asked"], 0.3, 5),
    (truths, [], ["classification"], 0.9, 6),
    (dates, ["--time-ordered", "day"], ["(ordered in time)"], -1.0, 10),
    (tabs, ["--groups", "colour"], ["(by 'colour')"], -1.0, 2),
    (tabs, ["--categorical", "age", "--drop", "size"], ["age ="], 0.2, 80),
    (tabs, ["--penalty", "l1", "--sep", "tab"], ["the best of 20"], 0.95, 5),
]


@pytest.mark.parametrize(
    ("write", "words", "told", "least", "width"),
    FILES,
    ids=[" ".join([write.__name__, *words]) for write, words, *_ in FILES],
)
def test_files_as_people_have_them(write, words, told, least, width, tmp_path, capsys):
    data, model, out = tmp_path / "data.csv", tmp_path / "model.npz", tmp_path / "p.csv"
    write(data)
    assert main(["fit", str(data), *words, "--cv", "3", "--out", str(model)]) == 0
    said = capsys.readouterr().out
    for part in told:
        assert part in said, said
    measured = re.search(r"(R2|accuracy) in 3-fold .*: (-?[\d.]+) \+-", said)
    assert float(measured[2]) >= least
    assert f" of {width} columns used" in said, said
    assert main(["predict", str(model), str(data), "--out", str(out)]) == 0
    there = capsys.readouterr()
    own = re.search(r"(R2|accuracy) (-?[\d.]+)", there.err)
    assert own[1] == measured[1] and float(own[2]) > least - 0.02
    assert len(pd.read_csv(out)) == N and f"{N} predictions" in there.out


def test_what_the_coefficients_speak_for_is_said(tmp_path, capsys):
    data = tmp_path / "data.csv"
    labels(data)
    assert main(["fit", str(data), "--penalty", "l1", "--alpha", "0.1", "--cv", "2"]) == 0
    said = capsys.readouterr().out
    assert "2 of 5 columns used; above zero speaks for 'dear'; per standard" in said
    assert re.search(r"\n  size +\d", said) and "age" not in said and "colour = blue" not in said
    counts(data)
    words = ["--task", "classification", "--alpha", "0.1", "--cv", "2"]
    assert main(["fit", str(data), *words, "--plot", str(tmp_path / "p.svg")]) == 0
    assert re.search(
        r"speaks for the label after the arrow.*\n  size -> \d", capsys.readouterr().out
    )
    assert (
        main(
            [
                "fit",
                str(data),
                "--penalty",
                "l1",
                "--alpha",
                "1e9",
                "--plot",
                str(data.with_suffix(".svg")),
            ]
        )
        == 0
    )
    assert "0 of 5 columns used; above zero speaks for more of 'visits'" in capsys.readouterr().out


def test_predictions_do_not_depend_on_what_else_is_in_the_file(tmp_path, capsys):
    data, model = tmp_path / "data.csv", tmp_path / "model.npz"
    gaps(data)
    assert main(["fit", str(data), "--alpha", "1e-3", "--out", str(model)]) == 0
    table = pd.read_csv(data)
    table[["colour", "age", "size"]].iloc[::-1].to_csv(tmp_path / "new.csv", index=False, sep=";")
    for name in ("data", "new"):
        words = ["predict", str(model), str(tmp_path / f"{name}.csv"), "--out"]
        assert main([*words, str(tmp_path / f"{name}.out.csv")]) == 0
    first, second = (pd.read_csv(tmp_path / f"{name}.out.csv") for name in ("data", "new"))
    np.testing.assert_allclose(first["prediction"], second["prediction"][::-1], rtol=1e-12)
    assert "R2" in capsys.readouterr().err


def test_new_words_and_new_gaps_are_told(tmp_path, capsys):
    data, model = tmp_path / "data.csv", tmp_path / "model.npz"
    labels(data)
    assert main(["fit", str(data), "--cv", "2", "--out", str(model)]) == 0
    new = pd.DataFrame({"size": [50, None, 40], "age": 3, "colour": ["red", "mauve", "blue"]})
    new.to_csv(tmp_path / "new.csv", index=False)
    capsys.readouterr()
    assert main(["predict", str(model), str(tmp_path / "new.csv")]) == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert lines[0] == "prediction,probability of cheap,probability of dear" and len(lines) == 4
    assert "'colour': 1 cells hold words that training did not see" in told.err
    assert "'size': 1 of 3 cells are missing; they become the median" in told.err


def test_refusing_gaps_holds_for_predictions_too(tmp_path, capsys):
    data, model = tmp_path / "data.csv", tmp_path / "model.npz"
    gaps(data)
    assert main(["fit", str(data), "--missing", "refuse"]) == 1
    assert "missing in 3 of 240 rows; fill or remove them" in capsys.readouterr().err
    pd.read_csv(data).dropna(subset="price").to_csv(data, index=False)
    assert main(["fit", str(data), "--missing", "refuse"]) == 1
    assert "'size': 22 of 237 cells are missing; fill them, drop the" in capsys.readouterr().err
    tabs(data)
    assert main(["fit", str(data), "--missing", "refuse", "--cv", "2", "--out", str(model)]) == 0
    gaps(data)
    assert main(["predict", str(model), str(data)]) == 1
    assert "cells are missing; fill them" in capsys.readouterr().err


@pytest.mark.parametrize("way", ["auto", "hash", "levels"])
def test_identifiers_need_little_memory(way, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": [f"user-{k}" for k in range(3000)], "x": rng.normal(size=3000)})
    table["y"] = table["x"] + rng.normal(size=3000)
    table.to_csv(tmp_path / "ids.csv", index=False)
    words = ["fit", str(tmp_path / "ids.csv"), "--cv", "2", "--alpha", "0.01"]
    tracemalloc.start()
    try:
        assert main([*words, "--high-cardinality", way]) == 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6


def test_parquet_and_nested_columns(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    frame = load_diabetes(as_frame=True).frame
    frame["tags"] = [["a", "b"][: k % 3] for k in range(len(frame))]
    frame["when"] = pd.Timestamp("2024-01-01", tz="Europe/Paris") + pd.to_timedelta(
        frame.index, "h"
    )
    frame["kind"] = pd.Categorical(np.where(frame.index % 2, "x", "y"))
    path, model = tmp_path / "d.parquet", tmp_path / "m.npz"
    frame.to_parquet(path)
    assert main(["fit", str(path), "--target", "target", "--out", str(model)]) == 0
    assert "(shuffled): 0.4" in capsys.readouterr().out
    assert main(["predict", str(model), str(path)]) == 0


def test_svmlight(tmp_path, capsys):
    X, y = load_breast_cancer(return_X_y=True)
    path, model, few = tmp_path / "c.txt", tmp_path / "m.npz", tmp_path / "few.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    assert main(["fit", str(path), "--cv", "2", "--alpha", "1e-2", "--out", str(model)]) == 0
    assert "accuracy in 2-fold cross-validation (shuffled): 0.9" in capsys.readouterr().out
    dump_svmlight_file(X[:5], y[:5], str(few), zero_based=False)
    assert main(["predict", str(model), str(few)]) == 0
    assert capsys.readouterr().out.count("\n") == 6
    tabs(tmp_path / "t.csv")
    assert main(["predict", str(model), str(tmp_path / "t.csv")]) == 1
    assert main(["fit", str(path), "--target", "y"]) == 2
    assert "--target needs columns with names" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".html", ".svg"])
def test_the_picture_is_small_and_inert(suffix, tmp_path, capsys):
    data, picture = tmp_path / "data.csv", tmp_path / f"picture{suffix}"
    base().rename(columns={"size": "<script>alert(1)</script>", "price": "'\"&"}).to_csv(
        data, index=False
    )
    assert main(["fit", str(data), "--cv", "2", "--plot", str(picture)]) == 0
    page = picture.read_text(encoding="utf-8")
    assert len(page) < 20_000 and "<script" not in page and "&lt;script" in page
    assert "along the path of alpha" in page and "<circle" in page
    assert "NaN" not in page.replace("nan", "NaN")


def test_a_sorted_column_without_a_name_is_no_counter(tmp_path, capsys):
    """Only whole numbers that go up by one count rows."""
    rng = np.random.default_rng(0)
    first = np.cumsum(rng.integers(1, 4, 60))
    path = tmp_path / "sorted.csv"
    pd.DataFrame({"": first, "y": 2.0 * first + rng.standard_normal(60)}).to_csv(path, index=False)
    assert main(["fit", str(path)]) == 0
    out = capsys.readouterr().out
    assert "counts the rows" not in out and "R2" in out
    assert float(out.split("cross-validation")[1].split(":")[1].split()[0]) > 0.99
