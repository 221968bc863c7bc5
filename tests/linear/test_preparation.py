"""From cells to a matrix: every kind of column against its formula, and how rows are split."""

import json
import zlib
from argparse import Namespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score

from scgd.linear import SCGDRegressor

pd = pytest.importorskip("pandas")

from scgd.linear.tables import preparation as module  # noqa: E402
from scgd.linear.tables.choosing import Options, choose  # noqa: E402
from scgd.linear.tables.columns import Dates, Hashed, Levels, Numbers  # noqa: E402
from scgd.linear.tables.preparation import TablePreparation  # noqa: E402
from scgd.linear.tables.reading import find_separator, has_decimal_commas  # noqa: E402
from scgd.linear.tables.target import Problem, decide, splits, target_values  # noqa: E402
from scgd.linear.tables.training import train  # noqa: E402
from scgd.linear.tables.values import as_numbers, as_words, date_format, days  # noqa: E402


def chosen(cells, **options):
    notes = []
    return choose("c", pd.Series(cells), Options(**options), notes.append), notes


def test_numbers_are_filled_marked_and_standardised():
    cells = [1.0, np.nan, 4.0, np.inf, 10.0]
    frame = pd.DataFrame({"c": cells})
    preparation = TablePreparation().fit(frame)
    assert preparation.labels == ["c", "c is missing"]
    assert preparation.notes[0] == "'c': 1 cells are infinite and count as missing"
    filled = np.array([1, 4, 4, 4, 10.0])
    marks = np.array([0, 1, 0, 1, 0.0])
    found = preparation.transform(frame)[0]
    np.testing.assert_allclose(found[:, 0], (filled - filled.mean()) / filled.std())
    np.testing.assert_allclose(found[:, 1], (marks - marks.mean()) / marks.std())
    new, notes = preparation.transform(pd.DataFrame({"c": [7.0]}))
    np.testing.assert_allclose(new[0, 0], (7 - filled.mean()) / filled.std())
    assert notes == []


def test_gaps_that_training_did_not_see_become_the_median():
    preparation = TablePreparation().fit(pd.DataFrame({"c": [1.0, 2.0, 6.0]}))
    assert preparation.labels == ["c"] and preparation.notes == []
    new, notes = preparation.transform(pd.DataFrame({"c": [None, "words"]}))
    np.testing.assert_allclose(new[:, 0], (2.0 - 3.0) / np.std([1, 2, 6]))
    assert notes == ["'c': 2 of 2 cells are missing; they become the median"]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_numbers_written_as_words_are_the_same_numbers(values):
    np.testing.assert_array_equal(as_numbers(pd.Series([repr(v) for v in values])), values)


@pytest.mark.parametrize(
    ("cell", "number"),
    [("1,234", 1234), ("12,345,678.5", 12345678.5), ("$ 5", 5), ("-€1,000", -1000), ("7%", 7),
     ("12,34", 12.34), ("1,2345", 1.2345), ("1.234,56", 1234.56), ("45,52 €", 45.52),
     ("1'234.5 CHF", 1234.5), ("1,23,4", np.nan), ("5 cm", np.nan), ("inf", np.nan), ("True", 1)],
)  # fmt: skip
def test_numbers_as_people_write_them(cell, number):
    np.testing.assert_array_equal(as_numbers(pd.Series([cell, "0"])), [number, 0])


def test_a_column_is_of_numbers_when_nine_of_ten_cells_are():
    column, notes = chosen(["1", "2", "3"] * 3 + ["many"])
    assert isinstance(column, Numbers) and column.marked
    assert notes == ["'c': 1 cells are no numbers and count as missing"]
    assert isinstance(chosen(["1", "2", "3"] * 3 + ["many", "few"])[0], Levels)


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["2024-02-29", "2024-03-01"], "ISO8601"),
        (["2024-02-29T10:00:00Z", "2024-03-01T10:00:00+02:00"], "ISO8601"),
        (["24.12.2024", "1.2.2025"], "%d.%m.%Y"),
        (["12/24/2024", "1/2/2025"], "%m/%d/%Y"),
        (["24/12/2024", "1/2/2025"], "%d/%m/%Y"),
        (["1/2/2025"] * 300 + ["24/12/2024"], "%d/%m/%Y"),
        (["2024/12/24", "2025/1/2"], "ISO8601"),
        (["24-12-2024 10:30", "1-2-2025 11:45"], "%d-%m-%Y %H:%M"),
        (["24 Dec 2024", "1 Feb 2025"], "%d %b %Y"),
        (["red", "blue"], None),
        (["B-12-3", "B-44-1"], None),
        (["2024-02-30", "2024-02-31"], None),
    ],
)
def test_dates_are_found(cells, form):
    assert date_format(pd.Series(cells)) == form


def test_dates_become_days_and_waves():
    first = np.datetime64("2020-01-01")
    stamps = first + np.arange(0, 900, 3)
    frame = pd.DataFrame({"d": stamps.astype(str)})
    column = TablePreparation().fit(frame).columns[0]
    assert isinstance(column, Dates) and column.cycles == ["year", "week"]
    found, n_missing, _ = column.transform(frame["d"])
    since = (stamps - np.datetime64("1970-01-01")).astype(float)
    np.testing.assert_allclose(found[:, 0], since - since[0])
    for place, period in ((1, 365.2425), (3, 7.0)):
        np.testing.assert_allclose(found[:, place], np.sin(2 * np.pi * since / period), atol=1e-9)
        np.testing.assert_allclose(
            found[:, place + 1], np.cos(2 * np.pi * since / period), atol=1e-9
        )
    gap, n_missing, _ = column.transform(pd.Series([None, "2020-01-04"]))
    assert n_missing == 1 and gap[0, 0] == np.median(since) - since[0] and gap[1, 0] == 3.0
    assert column.labels[:2] == ["d (days)", "d (sin of year)"]


def test_only_cycles_that_the_data_cover_are_used():
    hours = pd.Series(pd.date_range("2024-01-01", periods=60, freq="h"))
    assert Dates.fit("d", hours, "ISO8601").cycles == ["day"]
    assert Dates.fit("d", hours[:40], "ISO8601").cycles == []
    daily = pd.Series(pd.date_range("2024-01-01 08:00", periods=14, freq="D"))
    assert Dates.fit("d", daily, "ISO8601").cycles == []
    assert Dates.fit("d", pd.Series(pd.date_range("2024-01-01", periods=15)), "ISO8601").cycles == ["week"]  # fmt: skip


def test_days_count_from_1970_in_utc():
    cells = pd.Series(["1970-01-02T00:00:00+06:00", "1969-12-31"])
    np.testing.assert_array_equal(days(cells, "ISO8601"), [0.75, -1.0])


WORDS = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "", " a ", "née"]))


@given(st.lists(WORDS, min_size=1, max_size=12), st.lists(WORDS, max_size=6))
def test_levels_are_pandas_dummies(cells, others):
    words = as_words(pd.Series(cells, dtype=object))
    column = Levels.fit("c", pd.Series(cells, dtype=object))
    known = sorted(set(words.dropna())) + ["(missing)"] * bool(words.isna().any())
    expected = pd.get_dummies(pd.Categorical(words.fillna("(missing)"), known)).to_numpy(float)
    if len(known) == 2:
        expected = expected[:, 1:]
    block, n_missing, n_new = column.transform(pd.Series(cells, dtype=object))
    np.testing.assert_array_equal(block.toarray(), expected)
    assert n_missing == words.isna().sum() and n_new == 0 and block.shape[1] == len(column.labels)
    later = as_words(pd.Series([*others, None], dtype=object))
    block, n_missing, n_new = column.transform(later)
    assert n_missing == later.isna().sum()
    assert n_new == (~later.dropna().isin(known)).sum()
    assert block.shape == (len(later), len(column.labels))


def test_words_are_hashed_by_their_checksum():
    block, n_missing, _ = Hashed("c", 256).transform(pd.Series(["été", None, "x", "été"]))
    places = [zlib.crc32(word.encode()) % 256 for word in ("été", "x", "été")]
    expected = np.zeros((4, 256))
    expected[[0, 2, 3], places] = 1.0
    np.testing.assert_array_equal(block.toarray(), expected)
    assert n_missing == 1 and Hashed.fit("c", None).buckets == 256


def test_what_becomes_of_many_words():
    half, more = [f"w{k // 2}" for k in range(40)], [f"w{k}" for k in range(40)]
    assert isinstance(chosen(half, max_levels=20)[0], Levels)
    assert isinstance(chosen(half, max_levels=19)[0], Hashed)
    column, notes = chosen(more, max_levels=19)
    assert column is None and "like an identifier" in notes[0]
    assert chosen(half, max_levels=19, high_cardinality="drop")[0] is None
    assert isinstance(chosen(more, max_levels=19, high_cardinality="hash")[0], Hashed)
    assert isinstance(chosen(more, max_levels=19, high_cardinality="levels")[0], Levels)


def test_numbers_that_are_names():
    column, _ = chosen([1, 2, 3, 2], categorical=("c",))
    assert column.levels == ["1", "2", "3"]
    gap, *_ = Levels.fit("c", pd.Series([1, 2, 3])).transform(pd.Series([3.0, np.nan, 1.0]))
    np.testing.assert_array_equal(gap.toarray(), [[0, 0, 1], [0, 0, 0], [1, 0, 0]])


@pytest.fixture
def frame():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"a": rng.normal(size=30), "b": rng.choice(["x", "y", "z"], 30)})
    table["d"] = pd.date_range("2024-01-01", periods=30).astype(str)
    return table.mask(rng.random((30, 3)) < 0.1)


def test_sparse_and_dense_matrices_agree(frame, monkeypatch):
    preparation = TablePreparation().fit(frame)
    dense = preparation.transform(frame)[0]
    monkeypatch.setattr(module, "DENSE_CELLS", 0)
    np.testing.assert_array_equal(preparation.transform(frame)[0].toarray(), dense)
    assert isinstance(dense, np.ndarray) and dense.shape[1] == len(preparation.labels)


def test_the_state_is_json_and_arrays(frame):
    preparation = TablePreparation(Options(categorical=("b",))).fit(frame)
    plain, arrays = preparation.state()
    again = TablePreparation.restore(json.loads(json.dumps(plain)), arrays)
    np.testing.assert_array_equal(again.transform(frame)[0], preparation.transform(frame)[0])


def arguments(**changes):
    words = {"cv": 3, "seed": 0, "time_ordered": None, "groups": None, "task": "auto", "loss": None}
    return Namespace(**words | changes)


def test_groups_stay_together_and_time_goes_on():
    y = np.random.default_rng(0).normal(size=30)
    groups = np.repeat(list("abcdef"), 5)
    folds, manner = splits(Problem(None, y, "y", groups=groups), arguments(groups="g"), False)
    assert manner == "by 'g'" and len(folds) == 3
    assert all(not set(groups[train]) & set(groups[test]) for train, test in folds)
    order = np.random.default_rng(1).permutation(30).astype(float)
    problem = Problem(None, y, "y", order=order)
    folds, manner = splits(problem, arguments(time_ordered="t"), False)
    assert all(order[train].max() < order[test].min() for train, test in folds)
    folds, _ = splits(Problem(None, y, "y"), arguments(time_ordered=""), False)
    assert all(train.max() < test.min() for train, test in folds)


def test_shuffled_folds_follow_the_seed_and_the_labels():
    y = np.repeat([0, 1], [24, 6])
    folds, manner = splits(Problem(None, y, "y"), arguments(), True)
    assert manner == "shuffled" and all(y[test].sum() == 2 for _, test in folds)
    again, _ = splits(Problem(None, y, "y"), arguments(), True)
    other, _ = splits(Problem(None, y, "y"), arguments(seed=1), True)
    same = [np.array_equal(a[1], b[1]) for a, b in zip(folds, again, strict=True)]
    assert all(same) and any(
        not np.array_equal(a[1], b[1]) for a, b in zip(folds, other, strict=True)
    )
    rare, _ = splits(Problem(None, np.repeat([0, 1], [28, 2]), "y"), arguments(), True)
    assert sorted(np.concatenate([test for _, test in rare])) == list(range(30))


@pytest.mark.parametrize(
    ("y", "task", "kind"),
    [
        (np.array(["a", "b"] * 5), "classification", "U"),
        (np.array([0.0, 1.0] * 5), "classification", "i"),
        (np.array([0.5, 1.5] * 5), "classification", "U"),
        (np.array([1e300, 2e300] * 5), "classification", "U"),
        (np.arange(10.0) % 3, "regression", "f"),
        (np.linspace(0, 1, 10), "regression", "f"),
    ],
)
def test_the_task_is_guessed(y, task, kind):
    problem = Problem(None, y, "y")
    found, loss, _ = decide(problem, arguments())
    assert found == task and loss == {"classification": "logistic", "regression": "squared"}[task]
    assert problem.y.dtype.kind == kind


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([1, 2], [1.0, 2.0]),
        (["$1,200", "3"], [1200.0, 3.0]),
        ([True, False], ["True", "False"]),
        (pd.Series([True, False], dtype=object), ["True", "False"]),
        (["3", "many"], ["3", "many"]),
        ([3.0, 2.5], [3.0, 2.5]),
    ],
)
def test_targets_are_numbers_where_all_are(cells, expected):
    assert target_values(pd.Series(cells)).tolist() == expected


def test_every_fold_is_prepared_by_itself():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=40), "w": rng.choice(list("abcdefgh"), 40)})
    table.loc[::6, "x"] = np.nan
    table.loc[0, "x"] = 30.0  # the folds' means and medians differ
    y = rng.normal(size=40) + table["x"].fillna(0).to_numpy()
    problem = Problem(table, y, "y")
    folds, _ = splits(problem, arguments(), False)
    words = {"loss": "squared", "penalty": "l2", "random_state": 0}
    outcome = train(problem, "regression", words, 0.1, folds, Options())
    again = train(problem, "regression", words, 0.1, folds, Options(), n_jobs=2)
    np.testing.assert_array_equal(again.scores, outcome.scores)
    for place, (rows, held) in enumerate(folds):
        step = TablePreparation().fit(table.iloc[rows])
        model = SCGDRegressor(alpha=0.1, tol=1e-4, random_state=0).fit(
            step.transform(table.iloc[rows])[0], y[rows]
        )
        expected = r2_score(y[held], model.predict(step.transform(table.iloc[held])[0]))
        assert outcome.scores[0, place] == pytest.approx(expected, rel=1e-6)
    X = outcome.model.preparation.transform(table)[0]
    np.testing.assert_allclose(outcome.spread, X.std(axis=0), atol=1e-12)
    sizes = outcome.model.model.coef_ * X.std(axis=0)
    assert outcome.largest()[0][1] == sizes[np.abs(sizes).argmax()]


def test_separators_and_decimals():
    assert find_separator("a,b;c\n1,2;3\n4;5,6\n") == ","
    assert find_separator("a\tb c\n1\t2,5\n") == "\t"
    assert find_separator("alone\n1\n2\n") == ","
    assert has_decimal_commas([["h"], ["1,5"], ["2"]])
    assert not has_decimal_commas([["h"], ["1,5"], ["2.5"]]) and not has_decimal_commas([["1,5"]])
