"""Files that mislead: commas, currencies, rare labels, mixed targets, identifiers, formulas."""

import io

import numpy as np
import pytest

from scgd.cli import main

pd = pytest.importorskip("pandas")
N = 200


def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(50, 10, N), "age": rng.integers(18, 90, N)})
    table["price"] = 100 * table["size"] + rng.normal(size=N)
    return table


def fitted(path, table, *words, encoding="utf-8", sep=","):
    table.to_csv(path, index=False, encoding=encoding, sep=sep)
    return main(["fit", str(path), "--cv", "3", *words])


def european(values):
    return [f"{v:,.2f}".translate(str.maketrans(",.", ".,")) for v in values]


def test_european_thousands_and_currencies_are_numbers(tmp_path, capsys):
    table = frame()
    table["price"] = [f"{cell} €" for cell in european(table["price"])]
    table["size"] = european(table["size"] * 1000)
    assert fitted(tmp_path / "data.csv", table, sep=";", encoding="cp1252") == 0
    said = capsys.readouterr().out
    assert "regression" in said and "cp1252" in said
    assert float(said.split("cross-validation (shuffled): ")[1].split()[0]) > 0.99


def test_a_target_of_numbers_and_words_is_asked_about(tmp_path, capsys):
    table = frame()[["size", "price", "age"]]
    table["age"] = table["age"].astype(object)
    table.loc[:15, "age"] = "unknown"
    assert fitted(tmp_path / "data.csv", table) == 1
    assert "unknown" in (told := capsys.readouterr().err) and "--task regression" in told
    assert fitted(tmp_path / "data.csv", table, "--task", "regression") == 0
    assert "16 rows" in capsys.readouterr().out


def test_rare_labels_are_judged_by_balanced_accuracy(tmp_path, capsys):
    table = frame().drop(columns="price")
    table["late"] = np.where(np.arange(N) % 40 == 0, "yes", "no")
    assert fitted(tmp_path / "data.csv", table) == 0
    assert "balanced accuracy" in capsys.readouterr().out


def test_leaks_identifiers_and_outliers_are_pointed_out(tmp_path, capsys):
    table = frame()
    table.insert(0, "invoice", table["price"] * 1.19)
    table.insert(0, "customer", np.random.default_rng(1).permutation(N) + 1000)
    table.loc[3, "size"] = 1e12
    assert fitted(tmp_path / "data.csv", table) == 0
    said = capsys.readouterr().out
    assert "'invoice' alone tells the target" in said
    assert "'customer' has another whole number in each row" in said
    assert "'size' holds values far from all others" in said


def test_robust_scaling_lets_a_column_with_an_outlier_speak(tmp_path, capsys):
    table, path = frame(), tmp_path / "data.csv"
    table.loc[3, "size"] = 1e12
    scores = []
    for words in ([], ["--scale", "robust", "--out", str(tmp_path / "model.npz")]):
        assert fitted(path, table, *words) == 0
        said = capsys.readouterr().out
        assert ("--scale robust" in said) == (not words)
        scores.append(float(said.split("cross-validation (shuffled): ")[1].split()[0]))
    assert scores[0] < 0.5 < 0.8 < scores[1]
    assert main(["predict", str(tmp_path / "model.npz"), str(path)]) == 0
    beside = capsys.readouterr()
    first = pd.read_csv(io.StringIO(beside.out))["prediction"]
    assert np.corrcoef(first.drop(3), table["price"].drop(3))[0, 1] > 0.99


def test_one_softmax_and_predictions_that_no_spreadsheet_runs(tmp_path):
    table = frame().drop(columns="price")
    labels = np.array(["=1+1", "@sum", "fine"])
    table["label"] = labels[np.digitize(table["size"], [45, 55])]
    model, out = tmp_path / "model.npz", tmp_path / "out.csv"
    data = tmp_path / "data.csv"
    assert fitted(data, table, "--loss", "multinomial", "--out", str(model)) == 0
    assert main(["predict", str(model), str(data), "--out", str(out)]) == 0
    assert set(pd.read_csv(out)["prediction"]) <= {"'=1+1", "'@sum", "fine"}
