"""Carry out the two-dimensional illustration, and draw it moving."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from scgd.estimators import FirstOrder
from scgd.experiments.files import write_whole
from scgd.experiments.rows import Experiment, Job, Panel, method_look
from scgd.experiments.table import Curve, Run, Shape, read
from scgd.optimizer import Optimizer
from scgd.recipes import Recipe
from scgd.schedules import InverseTime
from scgd.steps import SGD
from scgd.typing import Floats

__all__ = ["cost", "execute", "illustrate", "shape"]

RUNS_PER_JOB = 20


def cost(job: Job) -> float:
    """Return the work of a job."""
    return float(len(job.runs))


def shape(panel: Panel, method: Any) -> Shape:
    """Return which rows a run has."""
    per_pass = steps_per_pass(method)
    passes = np.arange(panel.n_passes * per_pass + 1) / per_pass
    return Shape(panel.measures, passes, 2 if method.name == "musketeer" else 0)


def steps_per_pass(method: Any) -> int:
    """Return how many steps move both coordinates."""
    return 1 if method.policy.dense else 2


def execute(job: Job) -> Iterator[Run]:
    """Return the paths of a method."""
    for run in job.runs:
        started = time.perf_counter()
        path, weights = walk(job, run)
        spent = np.linspace(0, time.perf_counter() - started, len(path))
        steps = np.arange(float(len(path)))
        passes = steps / steps_per_pass(job.method)
        values = (path[:, 0], path[:, 1], job.panel.problem.value(*path.T))
        curves = [
            Curve(measure, passes, steps, spent, value)
            for measure, value in zip(job.panel.measures, values, strict=True)
        ]
        learned = None if job.method.name != "musketeer" else weights
        yield Run(job.key(run), curves, np.array(job.panel.problem.curvatures), learned)


def walk(job: Job, run: int) -> tuple[Floats, Floats]:
    """Return the iterates and the weights learned."""
    problem, policy = job.panel.problem, job.method.policy
    rate = InverseTime(problem.scale, problem.offset, per="pass")
    recipe = Recipe(job.method.name, policy, FirstOrder(), SGD(), rate, relative_rate=False,
                    relative_radius=False)  # fmt: skip
    seed = np.random.SeedSequence(job.entropy(run))
    opt = Optimizer(
        problem.start, recipe, first_order=True, sample=lambda rng: rng.normal(size=2), seed=seed
    )
    path, n_steps = [opt.x], job.panel.n_passes * steps_per_pass(job.method)
    while len(path) <= n_steps:
        (trial,) = opt.ask()
        if trial.coords is None:  # now and then a run by derivatives looks at f
            opt.tell(trial.id, float(problem.value(*trial.x)))
        else:
            opt.tell(trial.id, problem.gradient(trial.x, *trial.arguments)[trial.coords])
            path.append(opt.x)
    return np.array(path), opt.result().weights


def illustrate(experiment: Experiment, panels: Sequence[Panel], options: Any) -> None:
    """Write an animated GIF per panel, where Pillow is installed."""
    try:
        from PIL import Image
    except ImportError:
        return
    table = read(options.out / f"{experiment.id}.csv")
    for panel in panels:
        rows = table[(table["panel"] == panel.name) & (table["run"] == 0)]
        paths = {}
        for method, part in rows.groupby("method", sort=False, observed=True):
            wide = part.pivot_table(index="pass", columns="measure", values="value")
            paths[str(method)] = wide[["x", "y"]].to_numpy()
        frames = [frame(panel, paths, share) for share in np.linspace(0.02, 1, 50)]
        images = [Image.fromarray(f).convert("P", palette=Image.Palette.ADAPTIVE) for f in frames]
        film, durations = io.BytesIO(), [70] * (len(images) - 1) + [2500]
        images[0].save(
            film, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0
        )
        write_whole(options.out / f"{experiment.id}-{panel.name}.gif", film.getvalue())


def frame(panel: Panel, paths: dict[str, Floats], share: float) -> Any:
    """Return one picture of the animation: the first part of every path."""
    from PIL import Image, ImageDraw

    (x0, x1), (y0, y1) = panel.problem.scene()["range"]
    width, double = 480, 960
    height = int(double * (y1 - y0) / (x1 - x0))
    image = Image.new("RGB", (double, height), "white")
    draw = ImageDraw.Draw(image)

    def place(points: Floats) -> list[tuple[float, float]]:
        x, y = points.T
        columns, rows = (x - x0) / (x1 - x0) * double, (y1 - y) / (y1 - y0) * height
        return list(zip(columns.tolist(), rows.tolist(), strict=True))

    for radius in range(1, 7):
        draw.line(place(contour(panel.problem.curvatures, radius)), fill="#dddddd", width=2)
        if not panel.problem.curvatures[1]:
            draw.line(place(contour((1.0, 0.0), -radius)), fill="#dddddd", width=2)
    for method, points in paths.items():
        colour = method_look(method)["colour"]
        shown = place(points[: max(2, int(share * len(points)))])
        draw.line(shown, fill=colour, width=5, joint="curve")
        end = shown[-1]
        draw.ellipse([end[0] - 9, end[1] - 9, end[0] + 9, end[1] + 9], fill=colour)
    for i, method in enumerate(paths):
        draw.text((16, 14 + 34 * i), method, fill=method_look(method)["colour"], font_size=28)
    return np.asarray(image.resize((width, height // 2), Image.Resampling.LANCZOS))


def contour(curvatures: tuple[float, float], radius: float) -> Floats:
    """Return a level line: a circle, or an upright line where y does not matter."""
    if curvatures[1]:
        angle = np.linspace(0, 2 * np.pi, 90)
        return radius * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.array([[radius, -10.0], [radius, 10.0]])
