"""``scgd fit`` on files of every kind, and what it says when it cannot."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_diabetes

from scgd.cli import main
from scgd.linear.models import load_model

pandas = pytest.importorskip("pandas")


@pytest.fixture
def cancer(tmp_path):
    table = load_breast_cancer(as_frame=True).frame.iloc[:, -8:]
    table["target"] = np.where(table["target"] == 1, "benign", "malignant")
    table.to_csv(tmp_path / "cancer.csv", index=False)
    return tmp_path / "cancer.csv"


def test_csv_with_labels(cancer, tmp_path, capsys):
    pytest.importorskip("plotly")
    files = ["--out", str(tmp_path / "model.npz"), "--plot", str(tmp_path / "plot.html")]
    assert main(["fit", str(cancer), "--cv", "3", "--alpha", "1e-3", *files]) == 0
    told = capsys.readouterr().out
    assert "accuracy in 3-fold cross-validation: 0.9" in told and "worst" in told
    table = pandas.read_csv(cancer)
    model = load_model(tmp_path / "model.npz")
    assert np.mean(model.predict(table.iloc[:, :-1].to_numpy()) == table["target"]) > 0.9
    assert "sampling weight" in (tmp_path / "plot.html").read_text()


def test_parquet_with_numbers(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    load_diabetes(as_frame=True).frame.to_parquet(tmp_path / "d.parquet")
    assert main(["fit", str(tmp_path / "d.parquet"), "--target", "target", "--loss", "huber"]) == 0
    assert "R2 in 5-fold cross-validation: 0.4" in capsys.readouterr().out


def test_svmlight(tmp_path, capsys):
    X, y = load_breast_cancer(return_X_y=True)
    dump_svmlight_file(X, y, str(tmp_path / "c.svm"))
    assert main(["fit", str(tmp_path / "c.svm"), "--cv", "2", "--alpha", "1e-2"]) == 0
    assert "accuracy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["missing.csv"], 1, "there is no file"),
        (["DATA", "--target", "diagnosis"], 2, "no column 'diagnosis'"),
        (["DATA", "--loss", "squared"], 1, "cannot fit"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(cancer, capsys, words, code, message):
    words = [str(cancer) if word == "DATA" else word for word in words]
    assert main(["fit", *words]) == code
    told = capsys.readouterr().err.strip()
    assert message in told and told.startswith("scgd: ")


def test_other_files_are_not_models(tmp_path):
    np.savez(tmp_path / "other.npz", coef=np.zeros(3))
    with pytest.raises(ValueError, match="not a model saved by scgd"):
        load_model(tmp_path / "other.npz")
