"""Checkpoint files: whole or not there, with the rights they had, and nothing left behind."""

import io
import os
import signal
import stat
import zipfile

import numpy as np
import pytest

import scgd
from scgd.checkpoint import Checkpoint, CheckpointError, previous, read, write
from scgd.files import replacing


def fun(x):
    return float(np.sum((x - 1.0) ** 2))


def resume(path, **more):
    keywords = {"method": "musketeer", "max_evals": 100, "seed": 4, "scale": 1.0, **more}
    return scgd.minimize(fun, np.zeros(4), checkpoint=path, **keywords)


def killed_at(action, step):
    """Do something in a child that is killed with SIGKILL at a step of a write; True if it was."""
    child = os.fork()
    if child == 0:
        name, n = step
        real, calls = getattr(os, name), []

        def deadly(*args, **keywords):
            calls.append(1)
            if len(calls) == n:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **keywords)

        setattr(os, name, deadly)
        action()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


STEPS = [("chmod", 1), ("fsync", 1), ("link", 1), ("replace", 1), ("replace", 2), ("unlink", 1)]
STEPS += [("fsync", 2), ("unlink", 2)]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step[0]}-{step[1]}")
@pytest.mark.parametrize("linked", [False, True])
def test_a_kill_at_any_step_of_a_write(step, linked, tmp_path):
    """The file is the old or the new one; the next write leaves the one before, and no other."""
    path = tmp_path / "run.npz"
    if linked:
        (tmp_path / "there").mkdir()
        path.symlink_to(tmp_path / "there" / "real.npz")
    for n in (1, 2):
        write(path, {}, {"n": n})
    assert killed_at(lambda: write(path, {}, {"n": 3}), step)
    survived = read(path)[1]["n"]
    assert survived in (2, 3)
    seen = []
    assert Checkpoint(path).load(lambda identity, state: seen.append(state["n"]))
    assert seen == [survived]
    for n in (4, 5):
        write(path, {}, {"n": n})
        assert read(path)[1]["n"] == n
        assert read(previous(path))[1]["n"] == (survived if n == 4 else 4)
    names = {p.name for p in tmp_path.iterdir()} | {p.name for p in tmp_path.glob("there/*")}
    wanted = {"run.npz", ".run.npz.previous"} | ({"there", "real.npz"} if linked else set())
    assert names == wanted and path.is_symlink() == linked


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_permissions_are_kept(mode, tmp_path):
    path = tmp_path / "run.npz"
    resume(path)
    path.chmod(mode)
    resume(path, max_evals=200)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert stat.S_IMODE(previous(path).stat().st_mode) == mode


def test_a_new_file_gets_what_the_umask_leaves(tmp_path):
    mask = os.umask(0o027)
    try:
        resume(tmp_path / "run.npz")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "run.npz").stat().st_mode) == 0o640


def test_a_link_keeps_pointing_and_its_target_is_updated(tmp_path):
    (tmp_path / "disk").mkdir()
    path, target = tmp_path / "run.npz", tmp_path / "disk" / "state.npz"
    path.symlink_to(target)
    resume(path)
    assert path.is_symlink() and read(target)[1]["ledger"]["n_accepted"] == 100
    resume(path, max_evals=200)
    assert path.is_symlink() and read(target)[1]["ledger"]["n_accepted"] == 200


def test_planted_files_are_not_written_through(tmp_path):
    """Whatever stands where a temporary file might, a name in use is never opened."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    path = tmp_path / "run.npz"
    for name in (".run.npz.tmp", f".run.npz.{os.getpid()}.tmp", "run.npz.tmp"):
        (tmp_path / name).symlink_to(precious)
    resume(path)
    assert precious.read_text() == "mine" and read(path)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="half way"), replacing(path) as file:
        file.write(b"new")
        raise RuntimeError("half way")
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_not_a_file_is_refused(make, tmp_path):
    make(tmp_path / "run.npz")
    with pytest.raises(CheckpointError, match="is not an ordinary file"):
        resume(tmp_path / "run.npz")


def compressed(path):
    np.savez_compressed(path, document=np.array("{}"), zeros=np.zeros(1000))


def stored_with_a_header(path, shape, extra=b""):
    """Write a checkpoint whose array declares a shape that its bytes do not have."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("big.npy", header.getvalue() + extra)


@pytest.mark.parametrize(
    "make, why",
    [
        (compressed, "it is compressed"),
        (lambda path: stored_with_a_header(path, (2**40,)), r"shape \(1099511627776,\)"),
        (lambda path: stored_with_a_header(path, (3,), b"\0" * 32), "32 bytes|shape"),
        (lambda path: stored_with_a_header(path, (0, 2**62)), "readable"),
    ],
)
def test_bombs_are_refused(make, why, tmp_path):
    path = tmp_path / "run.npz"
    make(path)
    content = path.read_bytes()
    with pytest.raises(CheckpointError, match=f"not a readable checkpoint.*({why})|{why}"):
        resume(path)
    assert path.read_bytes() == content
