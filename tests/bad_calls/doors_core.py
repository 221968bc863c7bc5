"""What the arguments of minimize and its parts take: ``{door: (call, whose signature, kinds)}``."""

import dataclasses

import numpy as np

import scgd
from scgd.results import Result

P = 3


def bowl(x, *rest):
    return float(np.sum(np.asarray(x) ** 2))


def minimize(fun=bowl, x0=(1.0, 2.0, 3.0), **keywords):
    return scgd.minimize(
        fun, x0, **{"max_evals": 6, "max_time": 1.0, "method": "uniform", "scale": 1.0, **keywords}
    )


def screened(fun=bowl, space=((-1, 1),) * 3, **keywords):
    return scgd.screen(fun, space, **{"max_evals": 60, "max_time": 1.0, **keywords})


def optimizer(x0=(1.0, 2.0, 3.0), method="uniform", **keywords):
    opt = scgd.Optimizer(x0, method, **{"max_evals": 6, "scale": 1.0, **keywords})
    return opt.done or opt.ask()


PARTS = {
    "policy": "choice+none", "estimator": "choice+none", "step": "choice+none",
    "learning_rate": "positive+none+callable", "radius": "positive+none+callable",
    "block_size": "count+none", "importance": "none+vector+callable",
}  # fmt: skip
RUN = {
    "x0": "vector+one", "method": "choice", "sample": "count+callable+none",
    "scale": "positive+vector+none", "bounds": "none", "max_evals": "count+none",
    "failures": "choice+nothing", "seed": "seeds+none", "noise": "none", "tol": "fraction",
    "max_stall": "count+none", "maximize": "flag", "known": "nothing", "constraints": "nothing+none",
}  # fmt: skip
LAW = {"mixing": "fraction+callable"}


def schedule(cls, **fixed):
    def call(**keywords):
        made = cls(**{**fixed, **keywords})
        return scgd.minimize(
            bowl,
            np.ones(P),
            max_evals=6,
            method=scgd.SCGD(policy="uniform", learning_rate=made, radius=0.1),
        )

    return call


def drawn(cls, **fixed):
    def call(**keywords):
        return minimize(method=scgd.SCGD(policy=cls(**{**fixed, **keywords})))

    return call


def stepped(cls):
    def call(**keywords):
        return minimize(method=scgd.SCGD(step=cls(**keywords), learning_rate=0.1, radius=0.1))

    return call


def scgd_of(**keywords):
    return scgd.minimize(bowl, np.ones(P), method=scgd.SCGD(**keywords), scale=1.0, max_evals=6)


def in_space(**keywords):
    """Search a small space with a parameter made of these."""
    kind = keywords.pop("kind")
    made = scgd.Space(a=scgd.Choice("u", "v"), b=kind(**{"low": 1, "high": 2, **keywords}))
    return scgd.minimize(lambda params: 0.0, made, method="random", max_evals=2, seed=0)


def chosen(**keywords):
    return scgd.Space(a=scgd.Choice("u", "v"), b=scgd.Choice("x", "y", **keywords))


def laboratory(act):
    """Act on an optimizer that has handed out three trials."""

    def call(**keywords):
        opt = scgd.Optimizer((1.0, 2.0, 3.0), "uniform", max_evals=9, scale=1.0, failures="skip")
        opt.ask(3)
        return act(opt, **keywords)

    return call


def pictured(**keywords):
    return scgd.minimize(
        bowl, np.ones(P), max_evals=40, seed=0, reporting=scgd.Reporting(record=True)
    ).plot(**keywords)


NUMERIC = {"size": "count+none", "when": "none+dict", "log": "flag"}


DOORS = {
    "minimize": (minimize, scgd.minimize, {
        **RUN, "fun": "callable", "args": "anything", "jac": "callable+none", "max_time": "limit+none",
        "target": "target+none", "workers": "workers+callable", "reporting": "none+flag+path+callable", "checkpoint": "none+path",
    }),
    "screen": (screened, scgd.screen, {
        "fun": "callable", "space": "matrix", "args": "anything", "max_evals": "count+none",
        "noise": "nonnegative+none", "fdr": "fraction", "level": "fraction", "negligible": "fraction",
        "names": "none+patterns", "sample": "count+callable+none", "max_time": "limit+none",
        "failures": "choice+nothing", "seed": "seeds+none", "workers": "workers+callable",
        "reporting": "none+flag+path+callable", "checkpoint": "none+path",
    }),
    "Screen": (scgd.Screen, scgd.Screen, {
        "fdr": "fraction", "level": "fraction", "negligible": "fraction",
    }),
    "Optimizer": (optimizer, scgd.Optimizer, {**RUN, "first_order": "flag", "record": "flag"}),
    "Workers": (lambda **k: minimize(workers=scgd.Workers(**k)), scgd.Workers, {
        "engine": "workers+callable", "timeout": "none", "asynchronous": "count+none",
        "vectorized": "flag",
    }),
    "Reporting": (lambda **k: minimize(reporting=scgd.Reporting(**k)), scgd.Reporting, {
        "progress": "flag", "callback": "callable+none", "record": "flag", "log": "none+name",
    }),
    "Failures": (lambda **k: minimize(failures=scgd.Failures(**k)), scgd.Failures, {
        "nonfinite": "choice", "catch": "nothing",
    }),
    "Rows": (lambda n=9, **k: minimize(sample=scgd.Rows(n, **k)), scgd.Rows, {
        "n": "count", "batch_size": "count",
    }),
    "Float": (lambda **k: in_space(kind=scgd.Float, **k), scgd.Float, {
        "low": "number", "high": "number", "default": "none+number", "step": "none+positive",
        **NUMERIC,
    }),
    "Int": (lambda **k: in_space(kind=scgd.Int, **k), scgd.Int, {
        "low": "whole", "high": "whole", "default": "none+whole", "step": "count", **NUMERIC,
    }),
    "Choice": (chosen, scgd.Choice, {"ordered": "flag", "default": "none", "when": "none+dict", "values": "anything"}),
    "Space": (scgd.Space, scgd.Space.__init__, {"parameters": "anything"}),
    "ask": (laboratory(scgd.Optimizer.ask), scgd.Optimizer.ask, {"n": "count+none"}),
    "tell": (laboratory(lambda opt, ids=0, values=1.0, **k: opt.tell(ids, values, **k)),
             scgd.Optimizer.tell, {"ids": "whole", "values": "number+lost", "error": "none+nonnegative"}),
    "add": (laboratory(lambda opt, x=(0.0, 0.0, 0.0), value=1.0, **k: opt.add(x, value, **k)),
            scgd.Optimizer.add, {"x": "vector", "value": "number", "error": "none+nonnegative"}),
    "plot": (pictured, Result.plot, {
        "fun": "callable+none", "n_inputs": "natural", "dark": "flag",
    }),
    "SCGD": (scgd_of, scgd.SCGD, {
        "name": "name", **PARTS, "policy": "choice", "estimator": "choice", "step": "choice+none",
        "learning_rate": "positive+callable", "radius": "positive+callable", "block_size": "count",
        "replace": "flag", "average": "flag",
    }),
    "Checkpoint": (lambda path="x", **k: scgd.Checkpoint(path, **k), scgd.Checkpoint, {
        "path": "path", "every": "limit+nonnegative",
    }),
    "Musketeer": (drawn(scgd.Musketeer), scgd.Musketeer, {
        **LAW, "gain": "choice", "normalization": "choice", "sharpness": "positive",
        "length": "count+none", "memory": "choice", "rescale": "flag",
    }),
    "RecentGains": (drawn(scgd.RecentGains), scgd.RecentGains, {**LAW, "beta": "fraction"}),
    "Adaptive": (drawn(scgd.Adaptive), scgd.Adaptive, {
        "least": "fraction", "most": "positive", "forget": "fraction",
    }),
    "FixedWeights": (drawn(scgd.FixedWeights), scgd.FixedWeights, {"values": "vector"}),
    "GradientWeights": (drawn(scgd.GradientWeights), scgd.GradientWeights, {"power": "positive"}),
    "Momentum": (stepped(scgd.Momentum), scgd.Momentum, {"beta": "fraction", "nesterov": "flag"}),
    "RMS": (stepped(scgd.RMS), scgd.RMS, {"beta": "fraction", "epsilon": "nonnegative"}),
    "Adam": (stepped(scgd.Adam), scgd.Adam, {
        "beta1": "fraction", "beta2": "fraction", "epsilon": "nonnegative",
    }),
    "Learned": (stepped(scgd.Learned), scgd.Learned, {
        "beta": "fraction", "gain": "nonnegative", "shared_gain": "nonnegative",
        "shortest": "number", "longest": "number",
    }),
    "Wiener": (stepped(scgd.Wiener), scgd.Wiener, {
        "beta": "fraction", "beta2": "fraction", "shrinkage": "nonnegative",
        "shared_gain": "nonnegative", "longest": "nonnegative",
    }),
    "Constant": (schedule(scgd.Constant), scgd.Constant, {"value": "nonnegative"}),
    "InverseTime": (schedule(scgd.InverseTime), scgd.InverseTime, {
        "scale": "nonnegative", "offset": "nonnegative", "power": "number", "per": "choice",
    }),
    "InverseLog": (schedule(scgd.InverseLog), scgd.InverseLog, {"offset": "nonnegative"}),
    "Linear": (schedule(scgd.Linear), scgd.Linear, {
        "scale": "nonnegative", "end": "fraction", "power": "nonnegative", "start": "natural",
        "total": "natural+none",
    }),
    "Relative": (schedule(scgd.Relative), scgd.Relative, {"schedule": "callable+nonnegative"}),
    "SqrtOf": (schedule(scgd.SqrtOf), scgd.SqrtOf, {"schedule": "callable+nonnegative"}),
    "SphereSmoothing": (
        lambda **k: minimize(method=dataclasses.replace(scgd.METHODS["sphere"], estimator=scgd.SphereSmoothing(**k))),
        scgd.SphereSmoothing, {"unbiased": "flag"},
    ),
}  # fmt: skip
