"""The image data sets: where they are looked for, how they are got, how they are read.

Looked for in this order: the folder given by ``--data`` or ``SCGD_DATA``; Debian's package
``dataset-fashion-mnist``; the cache, which is filled from the official sources with checksums.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scgd.errors import CommandError
from scgd.typing import Array
from scgd_paper.files import write_whole

__all__ = ["DATASETS", "Images", "MissingData", "fetch", "load", "locate", "require", "scaled"]

IDX = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
CIFAR = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")
N_CLASSES = 10


@dataclass(frozen=True)
class Dataset:
    """A data set: its files, its official source with checksums, and how its pixels are scaled."""

    name: str
    files: tuple[str, ...]
    source: str
    checksums: dict[str, str]
    mean: float
    std: float
    debian: str = ""


DATASETS = {
    row.name: row
    for row in (
        Dataset(
            "mnist",
            IDX,
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            {
                "train-images-idx3-ubyte.gz": "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873",
                "train-labels-idx1-ubyte.gz": "md5:d53e105ee54ea40749a09fcbcd1e9432",
                "t10k-images-idx3-ubyte.gz": "md5:9fb629c4189551a2d022fa330f9573f3",
                "t10k-labels-idx1-ubyte.gz": "md5:ec29112dd5afa0611ce80d1b7f02629c",
            },
            0.1307,
            0.3081,
        ),
        Dataset(
            "fashion-mnist",
            IDX,
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            {
                "train-images-idx3-ubyte.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                "train-labels-idx1-ubyte.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
                "t10k-images-idx3-ubyte.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
                "t10k-labels-idx1-ubyte.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310",
            },
            0.5,
            0.5,
            "/usr/share/datasets/fashion-mnist",
        ),
        Dataset(
            "kmnist",
            IDX,
            "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
            {
                "train-images-idx3-ubyte.gz": "md5:bdb82020997e1d708af4cf47b453dcf7",
                "train-labels-idx1-ubyte.gz": "md5:e144d726b3acfaa3e44228e80efcd344",
                "t10k-images-idx3-ubyte.gz": "md5:5c965bf0a639b31b8f53240b1b52f4d7",
                "t10k-labels-idx1-ubyte.gz": "md5:7320c461ea6c1c855c0b718fb2a4b134",
            },
            0.5,
            0.5,
        ),
        Dataset(
            "cifar10",
            CIFAR,
            "https://www.cs.toronto.edu/~kriz/",
            {"cifar-10-binary.tar.gz": "md5:c32a1d4ab5d03f1284b67883e8d87530"},
            0.5,
            0.5,
        ),
    )
}


class MissingData(CommandError):
    """A data set is not at hand."""


class Images(NamedTuple):
    """Training and test images, one flat row of bytes each, with their labels."""

    train: Array
    train_labels: Array
    test: Array
    test_labels: Array


def cache_folder(name: str) -> Path:
    """Return where downloads are kept."""
    import pooch

    return Path(pooch.os_cache("scgd")) / name


def locate(name: str, folder: str | None = None) -> Path | None:
    """Return the folder that holds all files of a data set, or None."""
    row = DATASETS[name]
    given = folder or os.environ.get("SCGD_DATA")
    places = [Path(given) / name] if given else []
    if row.debian:
        places.append(Path(row.debian))
    try:
        places.append(cache_folder(name))
    except ImportError:
        pass
    return next((place for place in places if holds(place, row)), None)


def holds(place: Path, row: Dataset) -> bool:
    """Tell whether a folder has every file, plain or gzipped."""
    return all((place / f).exists() or (place / f"{f}.gz").exists() for f in row.files)


def require(name: str, folder: str | None = None) -> Path:
    """Return where a data set is, or say how to get it."""
    found = locate(name, folder)
    if found is None:
        debian = "; or apt install dataset-fashion-mnist" if DATASETS[name].debian else ""
        raise MissingData(
            f"the data set {name} is not at hand. Get it with: "
            f"python -m scgd_paper data get {name}; or put its "
            f"files into FOLDER/{name} and set SCGD_DATA=FOLDER or --data FOLDER{debian}"
        )
    return found


def fetch(name: str) -> Path:
    """Download a data set from its official source, checked against its checksums."""
    try:
        import pooch
    except ImportError:
        raise CommandError("downloads need pooch: pip install 'scgd[cli]'") from None
    row, target = DATASETS[name], cache_folder(name)
    for file, checksum in row.checksums.items():
        try:
            got = pooch.retrieve(row.source + file, checksum, file, target, progressbar=False)
        except Exception as error:
            raise CommandError(f"cannot get {row.source + file}: {error}") from None
        if file.endswith(".tar.gz"):
            unpack(Path(got), row)
    return target


def unpack(archive: Path, row: Dataset) -> None:
    """Write the named files of an archive beside it, and nothing else."""
    with tarfile.open(archive) as tar:
        for member in tar:
            name = Path(member.name).name
            stream = tar.extractfile(member) if name in row.files and member.isfile() else None
            if stream is not None:
                write_whole(archive.parent / name, stream.read())


@lru_cache(maxsize=2)
def load(name: str, folder: str | None = None) -> Images:
    """Return a data set as it is stored; :func:`scaled` turns its pixels into floats."""
    row, place = DATASETS[name], require(name, folder)
    if row.files is CIFAR:
        parts = [cifar_rows(place / file) for file in row.files]
        pixels = [p[:, 1:] for p in parts]
        labels = [p[:, 0].astype(np.int64) for p in parts]
        arrays = (np.vstack(pixels[:5]), np.concatenate(labels[:5]), pixels[5], labels[5])
    else:
        arrays = tuple(idx_array(place, file) for file in row.files)  # type: ignore[assignment]
    train, train_labels, test, test_labels = arrays
    if len(train) != len(train_labels) or len(test) != len(test_labels):
        raise CommandError(f"{place}: as many labels as images are needed; get {name} again")
    return Images(
        train.reshape(len(train), -1),
        train_labels.astype(np.int64),
        test.reshape(len(test), -1),
        test_labels.astype(np.int64),
    )


def scaled(pixels: Array, name: str) -> Array:
    """Return pixels as float32 with the published offset and scale.

    Divided by 255, less the data set's ``mean``, divided by its ``std``.

    Examples
    --------
    >>> scaled(np.array([0, 255], np.uint8), "fashion-mnist")
    array([-1.,  1.], dtype=float32)
    """
    row = DATASETS[name]
    out = pixels.astype(np.float32)
    out /= np.float32(255)
    out -= np.float32(row.mean)
    out /= np.float32(row.std)
    return out


def stored(path: Path) -> Path:
    """Return the file itself or, where only that is there, the gzipped one."""
    return path if path.exists() else path.with_name(f"{path.name}.gz")


def damaged(path: Path, what: str) -> CommandError:
    """Return the error that names a file."""
    return CommandError(f"{path} {what}; remove it and get it again")


def read_bytes(path: Path) -> bytes:
    """Return the contents of a file, unzipped; name a file that cannot be read."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, f"is damaged ({error})") from None


def idx_array(place: Path, file: str) -> Array:
    """Return the array of an IDX file: magic 00 00 08 d, d big-endian sizes, then bytes."""
    path, sides = stored(place / file), (28, 28) if "images" in file else ()
    data = read_bytes(path)
    n_dims = data[3] if len(data) > 4 and data[:3] == b"\0\0\x08" else 0
    shape = tuple(int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(n_dims))
    start = 4 + 4 * n_dims
    if not n_dims or len(data) <= start or len(data) - start != np.prod(shape):
        raise damaged(path, "is not a whole IDX file")
    if shape[1:] != sides:
        raise damaged(path, f"holds arrays of shape {shape[1:]} where {sides} is needed")
    array = np.frombuffer(data, np.uint8, offset=start).reshape(shape)
    return array if sides else checked_labels(array, path)


def cifar_rows(path: Path) -> Array:
    """Return the rows of a CIFAR batch: a label and 3,072 pixels each."""
    path = stored(path)
    data = np.frombuffer(read_bytes(path), np.uint8)
    if data.size == 0 or data.size % 3073:
        raise damaged(path, "is not a whole CIFAR-10 batch")
    rows = data.reshape(-1, 3073)
    checked_labels(rows[:, 0], path)
    return rows


def checked_labels(labels: Array, path: Path) -> Array:
    """Return labels if all of them name a class."""
    if labels.max() >= N_CLASSES:
        raise damaged(path, f"has the label {labels.max()} where {N_CLASSES - 1} is the largest")
    return labels
