"""The networks of the paper: their sizes, both softmaxes, and quick runs on small made images."""

import gzip

import numpy as np
import pytest
from PIL import Image

from scgd_paper.commands import main
from scgd_paper.datasets import CIFAR, IDX, load
from scgd_paper.registry import EXPERIMENTS
from scgd_paper.table import WEIGHT_COLUMNS, read

torch = pytest.importorskip("torch")
from scgd_paper import network_runs  # noqa: E402  (needs torch)

SIZES = {
    ("zo-networks", "mnist", "published"): 28_288,
    ("zo-networks", "kmnist", "paper"): 55_050,
    ("fo-networks", "mnist", "published"): 55_050,
    ("fo-networks", "fashion-mnist", "paper"): 55_050,
    ("fo-networks", "cifar10", "published"): 64_862,
    ("fo-networks", "cifar10", "paper"): 64_862,
}
OVER_BATCH = {key for key in SIZES if key[2] == "published" and key[1] != "cifar10"}
PER_CLASS = {"train": 32, "test": 12}


def labelled(part: str, n_pixels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images of ten classes that differ in which tenth of the pixels is bright."""
    labels = np.tile(np.arange(10), PER_CLASS[part])
    pixels = np.random.default_rng(len(part)).integers(0, 60, (len(labels), n_pixels))
    bright = np.arange(n_pixels) * 10 // n_pixels == labels[:, None]
    return (pixels + 180 * bright).astype(np.uint8), labels.astype(np.uint8)


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(n.to_bytes(4, "big") for n in array.shape)
    return gzip.compress(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes(), 1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    parts = [array for part in PER_CLASS for array in labelled(part, 784)]
    for name in ("mnist", "fashion-mnist", "kmnist"):
        (folder / name).mkdir()
        for file, array in zip(IDX, parts, strict=True):
            shaped = array.reshape(-1, 28, 28) if array.ndim == 2 else array
            (folder / name / f"{file}.gz").write_bytes(idx(shaped))
    (folder / "cifar10").mkdir()
    for part, files in (("train", CIFAR[:5]), ("test", CIFAR[5:])):
        pixels, labels = labelled(part, 3072)
        rows = np.column_stack([labels, pixels])
        for file, batch in zip(files, np.array_split(rows, len(files)), strict=True):
            (folder / "cifar10" / file).write_bytes(batch.tobytes())
    yield folder
    load.cache_clear()
    network_runs.tensors.cache_clear()


def quick_run(name, settings, data, out, *others) -> int:
    arguments = ["run", name, "--quick", "--settings", settings, "--workers", "1", "--no-progress"]
    return main([*arguments, "--data", str(data), "--out", str(out), *others])


@pytest.mark.parametrize(("name", "panel", "settings"), SIZES)
def test_networks_have_the_sizes_and_the_softmax_named(name, panel, settings):
    problem = EXPERIMENTS[name].panel(panel, settings).problem
    model = network_runs.build(problem, 0)
    assert sum(p.numel() for p in model.parameters()) == SIZES[name, panel, settings]
    images = torch.rand(7, 3, 32, 32) if panel == "cifar10" else torch.rand(7, 784)
    axis = 0 if (name, panel, settings) in OVER_BATCH else 1
    sums = model(images).exp().sum(dim=axis)
    assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5)


def test_the_convolutional_network_is_the_one_described():
    """Pooling before the ReLU and the order of the colours change the time, not a value."""
    problem = EXPERIMENTS["fo-networks"].panel("cifar10", "published").problem
    ours = network_runs.build(problem, 3)
    first, second, *rest = [m for m in ours if list(m.parameters())]
    images = torch.rand(5, 3, 32, 32, generator=torch.Generator().manual_seed(0)) - 0.5
    pool = torch.nn.functional.max_pool2d
    theirs = pool(torch.relu(first(images)), 2)
    theirs = pool(torch.relu(second(theirs)), 2).flatten(1)
    for layer in rest[:-1]:
        theirs = torch.relu(layer(theirs))
    theirs = torch.log_softmax(rest[-1](theirs), dim=1)
    assert torch.allclose(ours(images), theirs, atol=1e-6)
    assert [m.out_features for m in rest] == [120, 84, 10]


def test_accuracy_counts_all_images_whatever_is_seen_at_once():
    model = torch.nn.Identity()
    images = torch.eye(10)[torch.arange(23) % 10]
    labels = torch.arange(23) % 10
    labels[[0, 7, 22]] += 1
    for at_once in (None, 1, 5, 23, 100):
        assert network_runs.accuracy(model, images, labels, at_once) == pytest.approx(20 / 23)
    over_batch = torch.nn.LogSoftmax(dim=0)
    tilted = torch.tensor([[3.0, 2.0], [3.0, 0.0]])  # class 1 is likelier for the first than usual
    truth = torch.tensor([1, 0])
    assert network_runs.accuracy(over_batch, tilted, truth) == 1
    assert network_runs.accuracy(over_batch, tilted, truth, 1) == 0.5


@pytest.mark.parametrize("settings", [pytest.param("published", marks=pytest.mark.slow), "paper"])
@pytest.mark.parametrize("name", ["zo-networks", "fo-networks"])
def test_quick_runs_train_and_make_whole_tables(name, settings, data, tmp_path, capsys):
    few = ["--panel", "mnist"] if settings == "paper" else []  # one network is enough for both
    few += ["--panel", "cifar10"] if few and name == "fo-networks" else []
    assert quick_run(name, settings, data, tmp_path, "--runs", "1", *few) == 0
    said = capsys.readouterr().out
    table = read(tmp_path / f"{name}.csv")
    looks = 1 if name == "zo-networks" else network_runs.LOOKS_PER_PASS
    panels = [p.quick() for p in EXPERIMENTS[name].panels[settings] if not few or p.name in few]
    for panel in panels:
        rows = table[table["panel"] == panel.name]
        assert len(rows) == 2 * len(panel.methods) * looks * panel.n_passes
        values = rows.groupby("measure")["value"]
        assert np.isfinite(rows["value"]).all() and values.min()["loss"] > 0
        assert 0 <= values.min()["accuracy"] and values.max()["accuracy"] <= 1
        side = 32 if panel.name == "cifar10" else 28
        with Image.open(tmp_path / f"{name}-{panel.name}.png") as sheet:
            assert sheet.size == (12 * side, 10 * side)
        assert f"{name} · {panel.name} · {settings} · quick runs" in said
    if name == "fo-networks":
        losses = table[(table["panel"] == "mnist") & (table["measure"] == "loss")]
        losses = losses[losses["method"] == "sgd-equal"]["value"].to_numpy()
        assert losses[-1] < losses[0]
    check_laws(name, panels, tmp_path)


def check_laws(name, panels, folder):
    """Sampled methods of the sigmoid networks leave a law over the 784 pixels."""
    laws = read(folder / f"{name}.weights.csv", WEIGHT_COLUMNS)
    learning = {
        (panel.name, method.name)
        for panel in panels
        for method in panel.methods
        if method.name.startswith(("musketeer", "eta")) and panel.name != "cifar10"
    }
    assert {tuple(k) for k in laws[["panel", "method"]].drop_duplicates().to_numpy()} == learning
    by_run = laws.groupby(["panel", "method", "run"], observed=True)["weight"]
    assert (by_run.size() == 784).all()
    assert np.allclose(by_run.sum(), 1, atol=1e-3)


def test_sample_sheet_shows_classes_along_the_rows(data, tmp_path):
    assert (
        quick_run("fo-networks", "paper", data, tmp_path, "--panel", "cifar10", "--runs", "1") == 0
    )
    with Image.open(tmp_path / "fo-networks-cifar10.png") as sheet:
        pixels = np.asarray(sheet).astype(float)
    cells = pixels.reshape(10, 32, 12, 32, 3).mean(axis=(1, 3))  # class, sample, colour
    assert cells[0].argmax(axis=1).tolist() == [0] * 12  # the first tenth of the bytes is red
    assert cells[9].argmax(axis=1).tolist() == [2] * 12


def test_a_damaged_data_set_leaves_out_its_panel_only(data, tmp_path, capsys):
    copy = tmp_path / "data"
    for name in ("mnist", "kmnist"):
        (copy / name).mkdir(parents=True)
        for file in IDX:
            (copy / name / f"{file}.gz").write_bytes((data / name / f"{file}.gz").read_bytes())
    (copy / "mnist" / f"{IDX[1]}.gz").write_bytes(idx(np.full(320, 77, np.uint8)))
    panels = ["--panel", "mnist", "--panel", "kmnist", "--runs", "1"]
    assert quick_run("zo-networks", "published", copy, tmp_path / "out", *panels) == 1
    said = capsys.readouterr()
    assert "zo-networks: mnist left out" in said.err
    assert f"{IDX[1]}.gz has the label 77" in said.err
    assert "zo-networks · kmnist · published · quick runs" in said.out
    assert set(read(tmp_path / "out" / "zo-networks.csv")["panel"]) == {"kmnist"}


def test_stopped_runs_go_on(data, tmp_path):
    panels = ["--panel", "mnist"]
    assert quick_run("zo-networks", "paper", data, tmp_path / "a", *panels, "--runs", "1") == 0
    for out in ("a", "b"):
        assert quick_run("zo-networks", "paper", data, tmp_path / out, *panels) == 0
    a, b = (read(tmp_path / out / "zo-networks.csv").drop(columns="seconds") for out in ("a", "b"))
    names = ["method", "run", "measure"]
    assert a.sort_values(names, ignore_index=True).equals(b.sort_values(names, ignore_index=True))
