"""Data sets: read exactly, damage named, absence explained."""

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from scgd.errors import CommandError
from scgd_paper.datasets import CIFAR, DATASETS, IDX, MissingData, fetch, load, locate, require


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(n.to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    place = tmp_path / "mnist"
    place.mkdir()
    for name, n in (("train", 7), ("t10k", 3)):
        images, labels = rng.integers(0, 256, (n, 28, 28)), rng.integers(0, 10, n)
        (place / f"{name}-images-idx3-ubyte").write_bytes(idx(images))
        (place / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    load.cache_clear()
    yield tmp_path
    load.cache_clear()


def test_plain_and_zipped_files_are_read(folder, monkeypatch):
    monkeypatch.setenv("SCGD_DATA", str(folder))
    images = load("mnist")
    assert images.train.shape == (7, 784) and images.test.shape == (3, 784)
    raw = np.frombuffer((folder / "mnist" / IDX[0]).read_bytes(), np.uint8, offset=16)
    assert np.array_equal(images.train.ravel(), raw)
    assert images.train_labels.dtype == np.int64


@pytest.mark.parametrize("cut", [0, 3, 10, 100])
def test_cut_file_is_named(folder, cut):
    path = folder / "mnist" / IDX[0]
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(CommandError, match="train-images-idx3-ubyte is not a whole IDX file"):
        load("mnist", str(folder))


def test_damaged_zip_is_named(folder):
    path = folder / "mnist" / f"{IDX[1]}.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CommandError, match=r"train-labels-idx1-ubyte.gz is damaged"):
        load("mnist", str(folder))


def test_bytes_flipped_in_a_zip_are_named(folder):
    path = folder / "mnist" / f"{IDX[3]}.gz"
    data = bytearray(path.read_bytes())
    data[12:16] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    with pytest.raises(CommandError, match=r"t10k-labels-idx1-ubyte.gz is damaged"):
        load("mnist", str(folder))


def test_labels_without_a_class_are_named(folder):
    (folder / "mnist" / f"{IDX[1]}.gz").write_bytes(gzip.compress(idx(np.full(7, 77))))
    with pytest.raises(CommandError, match=r"train-labels-idx1-ubyte.gz has the label 77 where 9"):
        load("mnist", str(folder))


def test_images_of_another_size_are_named(folder):
    (folder / "mnist" / IDX[0]).write_bytes(idx(np.zeros((7, 32, 32))))
    with pytest.raises(CommandError, match=r"train-images-idx3-ubyte holds arrays of shape"):
        load("mnist", str(folder))


def test_labels_must_match_images(folder):
    (folder / "mnist" / f"{IDX[1]}.gz").write_bytes(gzip.compress(idx(np.zeros(6))))
    with pytest.raises(CommandError, match="as many labels as images"):
        load("mnist", str(folder))


def test_cifar_rows(tmp_path):
    place = tmp_path / "cifar10"
    place.mkdir()
    rng = np.random.default_rng(0)
    for i, name in enumerate(CIFAR):
        rows = rng.integers(0, 256, (2, 3073)).astype(np.uint8)
        rows[:, 0] = i
        (place / name).write_bytes(rows.tobytes())
    load.cache_clear()
    images = load("cifar10", str(tmp_path))
    assert images.train.shape == (10, 3072)
    assert images.train_labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    (place / CIFAR[1]).write_bytes(bytes([10]) * 3073)
    load.cache_clear()
    with pytest.raises(CommandError, match=r"data_batch_2.bin has the label 10 where 9"):
        load("cifar10", str(tmp_path))
    (place / CIFAR[1]).write_bytes(bytes([9]) * 3073)
    (place / CIFAR[2]).write_bytes(b"x" * 3072)
    load.cache_clear()
    with pytest.raises(CommandError, match=r"data_batch_3.bin is not a whole CIFAR-10 batch"):
        load("cifar10", str(tmp_path))


def test_absent_data_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.delenv("SCGD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert locate("kmnist") is None
    with pytest.raises(MissingData, match="scgd_paper data get kmnist"):
        require("kmnist")


def test_a_folder_with_a_part_only_does_not_count(folder):
    (folder / "mnist" / IDX[0]).unlink()
    assert locate("mnist", str(folder)) is None


@pytest.mark.skipif("SCGD_DATA" not in os.environ, reason="SCGD_DATA names no folder of data sets")
@pytest.mark.parametrize("name", DATASETS)
def test_real_data_sets_have_their_sizes(name):
    place = locate(name, os.environ["SCGD_DATA"])
    if place is None:
        pytest.skip(f"{name} is not in {Path(os.environ['SCGD_DATA']).name}")
    images = load(name, os.environ["SCGD_DATA"])
    n_train, n_pixels = (50_000, 3072) if name == "cifar10" else (60_000, 784)
    assert images.train.shape == (n_train, n_pixels)
    assert images.test.shape == (10_000, n_pixels)
    assert set(images.test_labels) == set(range(10))
    load.cache_clear()


def test_a_downloaded_archive_is_unpacked_and_nothing_else_of_it(tmp_path, monkeypatch):
    def retrieve(url, checksum, file, target, progressbar):
        target.mkdir(parents=True)
        with tarfile.open(target / file, "w:gz") as tar:
            for name in (f"batches/{CIFAR[0]}", "../outside.txt"):
                entry = tarfile.TarInfo(name)
                entry.size = 3
                tar.addfile(entry, io.BytesIO(b"abc"))
        return str(target / file)

    pooch = SimpleNamespace(retrieve=retrieve, os_cache=lambda name: tmp_path / name)
    monkeypatch.setitem(sys.modules, "pooch", pooch)
    place = fetch("cifar10")
    assert (place / CIFAR[0]).read_bytes() == b"abc"
    assert not list(tmp_path.rglob("outside.txt"))
