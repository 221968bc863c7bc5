"""Model files: everything comes back, nothing is executed, and broken ones give one kind of error."""

import json
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from scgd import Uniform
from scgd.linear import SCGDClassifier, SCGDClassifierCV, SCGDRegressor, SCGDRegressorCV
from scgd.linear.models import FORMAT, ModelError, TableModel, load_model, save_model

pd = pytest.importorskip("pandas")

from scgd.linear.tables.choosing import Options  # noqa: E402
from scgd.linear.tables.preparation import MatrixPreparation, TablePreparation  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))


@pytest.fixture(scope="module")
def table():
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(60) * 20, "D")
    frame = pd.DataFrame({"größe": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue")})
    frame["when"] = when.strftime("%Y-%m-%d")
    frame["shop"] = [f"s{k % 25}" for k in range(60)]
    frame.loc[::9, "größe"] = np.nan
    frame.loc[::8, "colour"] = None
    return frame


@pytest.fixture(scope="module")
def saved(table, tmp_path_factory):
    options = Options(max_levels=20, categorical=("colour",))
    preparation = TablePreparation(options).fit(table)
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = SCGDClassifier(alpha=0.1, random_state=0).fit(preparation.transform(table)[0], y)
    path = tmp_path_factory.mktemp("model") / "m.npz"
    save_model(path, TableModel(preparation, model, "answer"))
    return path, TableModel(preparation, model, "answer")


def test_a_table_model_comes_back_whole(saved, table):
    path, model = saved
    found = load_model(path)
    assert found.target == "answer" and found.preparation.labels == model.preparation.labels
    assert found.preparation.options == model.preparation.options
    assert found.preparation.columns == model.preparation.columns
    assert found.model.get_params() == model.model.get_params()
    np.testing.assert_array_equal(found.predict(table), model.predict(table))
    np.testing.assert_array_equal(found.predict_proba(table), model.predict_proba(table))
    kinds = {type(column).__name__ for column in found.preparation.columns}
    assert kinds == {"Numbers", "Levels", "Dates", "Hashed"}


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (SCGDRegressor(alpha=0.1, random_state=0), X[:, 0]),
        (SCGDRegressor(policy=Uniform(), random_state=0), X[:, 0]),
        (SCGDClassifier(loss="hinge", alpha=0.1, random_state=0), X[:, 0] > 0),
        (SCGDClassifier(random_state=0, alpha=0.1), np.digitize(X[:, 0], [-0.5, 0.5])),
        (SCGDClassifier(random_state=0, alpha=0.1), np.array(["a", "bb", "c"], object)[np.arange(60) % 3]),
        (SCGDRegressorCV(random_state=0, alphas=2, cv=2), X[:, 0]),
        (SCGDClassifierCV(random_state=0, alphas=2, cv=2), X[:, 0] > 0),
    ],
)  # fmt: skip
def test_estimators_come_back(model, y, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model.fit(frame, y)
    save_model(tmp_path / "m.npz", model)
    found = load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(found.predict(frame), model.predict(frame))
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert found.n_iter_ == model.n_iter_


def test_matrices_come_back(tmp_path):
    matrix = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0))
    preparation = MatrixPreparation().fit(matrix)
    prepared = preparation.transform(matrix)[0]
    np.testing.assert_allclose(prepared.toarray().std(axis=0), 1.0)
    model = SCGDRegressor(random_state=0).fit(prepared, X[:, 0])
    save_model(tmp_path / "m.npz", TableModel(preparation, model, "target"))
    found = load_model(tmp_path / "m.npz")
    np.testing.assert_array_equal(found.predict(matrix), model.predict(prepared))


def changed(path, new, header=None, arrays=None, drop=()):
    """Write a copy of a model with parts of it changed."""
    with np.load(path) as file:
        contents = dict(file)
    head = json.loads(str(contents["header"]))
    (header or (lambda h: None))(head)
    contents |= {"header": np.array(json.dumps(head)), **(arrays or {})}
    np.savez(new, **{name: value for name, value in contents.items() if name not in drop})
    return new


BROKEN = {
    "another format": {"header": lambda h: h.update(format=FORMAT + 1)},
    "no kind": {"header": lambda h: h.pop("kind")},
    "another kind": {"header": lambda h: h.update(kind="os.system")},
    "a parameter nobody knows": {"header": lambda h: h["params"].update(shell="rm")},
    "a column less": {"header": lambda h: h["preparation"]["columns"].pop()},
    "a column of another kind": {"header": lambda h: h["preparation"]["columns"][0].update(kind="x")},
    "a field too many": {"header": lambda h: h["preparation"]["columns"][0].update(more=1)},
    "a median in words": {"header": lambda h: h["preparation"]["columns"][0].update(median="1")},
    "a median that is no number": {"header": lambda h: h["preparation"]["columns"][0].update(median=float("nan"))},
    "levels that are no words": {"header": lambda h: h["preparation"]["columns"][1].update(levels=[1, 2, 3])},
    "a cycle nobody knows": {"header": lambda h: h["preparation"]["columns"][2].update(cycles=["moon"])},
    "buckets without end": {"header": lambda h: h["preparation"]["columns"][3].update(buckets=10**15)},
    "no buckets": {"header": lambda h: h["preparation"]["columns"][3].update(buckets=0)},
    "a scale of zeros": {"arrays": {"preparation.scale": np.zeros(7)}},
    "an infinite center": {"arrays": {"preparation.center": np.full(7, np.inf)}},
    "a preparation nobody knows": {"header": lambda h: h["preparation"].update(kind="x")},
    "options of another type": {"header": lambda h: h["preparation"]["options"].update(max_levels="9")},
    "coefficients of another shape": {"arrays": {"coef_": np.zeros((1, 2))}},
    "coefficients that are no numbers": {"arrays": {"coef_": np.array([["a"]])}},
    "infinite coefficients": {"arrays": {"intercept_": np.array([np.inf])}},
    "classes that do not fit": {"arrays": {"classes_": np.array(["a", "b", "c"])}},
    "one class": {"arrays": {"classes_": np.array(["a"])}},
    "a scale of another shape": {"arrays": {"preparation.scale": np.ones(1)}},
    "no coefficients": {"drop": ["coef_"]},
    "no header": {"drop": ["header"]},
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_fit_is_refused(name, saved, tmp_path):
    with pytest.raises(ModelError, match="is not a model saved by scgd"):
        load_model(changed(saved[0], tmp_path / "m.npz", **BROKEN[name]))


def test_the_columns_are_those_that_are_broken(saved):
    kinds = [type(column).__name__ for column in saved[1].preparation.columns]
    assert (
        kinds == ["Numbers", "Levels", "Dates", "Hashed"] and len(saved[1].preparation.scale) == 7
    )


def test_the_unchanged_copy_is_read(saved, table, tmp_path):
    found = load_model(changed(saved[0], tmp_path / "m.npz"))
    np.testing.assert_array_equal(found.predict(table), saved[1].predict(table))


def test_bombs_are_refused_before_they_are_read(saved, tmp_path):
    with (
        zipfile.ZipFile(saved[0]) as old,
        zipfile.ZipFile(tmp_path / "m.npz", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(ModelError, match="compressed"):
        load_model(tmp_path / "m.npz")
    with zipfile.ZipFile(tmp_path / "twice.npz", "w") as file:
        file.writestr("coef_.npy", b"x" * 1000)
        file.filelist[0].file_size = file.filelist[0].compress_size = 10**12
    with pytest.raises(ModelError, match="declared larger than the file"):
        load_model(tmp_path / "twice.npz")


def test_objects_are_refused(tmp_path):
    np.savez(tmp_path / "m.npz", header=np.array([{"format": FORMAT}], object))
    with pytest.raises(ModelError):
        load_model(tmp_path / "m.npz")
    np.savez(tmp_path / "other.npz", coef=np.zeros(3))
    with pytest.raises(ModelError, match="not a model saved by scgd"):
        load_model(tmp_path / "other.npz")
    with pytest.raises(ModelError, match="there is no model"):
        load_model(tmp_path / "none.npz")


@given(data=st.data())
def test_damage_gives_one_kind_of_error(data, saved, tmp_path_factory):
    good = saved[0].read_bytes()
    place = data.draw(st.integers(0, len(good) - 1))
    cut = data.draw(st.booleans())
    bad = good[:place] if cut else good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :]
    path = tmp_path_factory.mktemp("bad") / "m.npz"
    path.write_bytes(bad)
    try:
        load_model(path)
    except ModelError:
        return
    assert not cut  # a byte of the zip's own fields may not matter
