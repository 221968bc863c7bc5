"""The illustration of appendix C: what a pass is, and where a run ends."""

import numpy as np
import pytest

from scgd_paper.path_runs import execute, shape
from scgd_paper.registry import EXPERIMENTS
from scgd_paper.rows import Job

(PANELS,) = (e.panels["paper"] for e in EXPERIMENTS.values() if e.id == "paths-2d")


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_a_pass_moves_every_coordinate_once(panel):
    """A step of the whole gradient moves both, any other one of them; the axis ends with the run."""
    for method in panel.methods:
        (run,) = execute(Job("paths-2d", "path", "paper", panel, method, (0,)))
        wanted = shape(panel, method)
        n_coords = 2 if method.name == "sgd" else 1
        for curve in run.curves:
            assert curve.passes[-1] == panel.n_passes == wanted.passes[-1]
            assert len(curve.passes) == panel.n_passes * 2 // n_coords + 1
            np.testing.assert_array_equal(curve.passes, wanted.passes)
        x, y = (np.diff(curve.values) for curve in run.curves[:2])
        moved = (x != 0).astype(int) + (y != 0)
        assert np.all(moved <= n_coords) and np.mean(moved) > 0.99 * n_coords


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.name)
def test_the_picture_ends_where_its_contours_do(panel):
    scene = panel.problem.scene()
    ends = [[float(edge) for edge in scene["contour"][axis][[0, -1]]] for axis in "xy"]
    assert scene["range"] == ends
