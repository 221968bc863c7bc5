"""Arguments of a run, given one by one, as ``minimize`` and ``Optimizer`` take them together."""

from dataclasses import fields, replace

import scgd

PARTS = {field.name for field in fields(scgd.SCGD)} - {"name"}
WORKERS = ("timeout", "asynchronous", "vectorized")
REPORTING = ("progress", "callback", "record", "log")


def grouped(**words):
    """Return keywords with parts of SCGD, failures, workers and reporting put together."""
    parts = {name: words.pop(name) for name in PARTS & words.keys()}
    if parts:
        base = words.get("method", "musketeer")
        words["method"] = replace(scgd.METHODS.get(base, base), **parts)
    if {"nonfinite", "catch"} & words.keys():
        own = {name: words.pop(name) for name in ("nonfinite", "catch") if name in words}
        words["failures"] = scgd.Failures(**own)
    if "batch_size" in words:
        words["sample"] = scgd.Rows(words["sample"], words.pop("batch_size"))
    own = {name: words.pop(name) for name in WORKERS if name in words}
    if own:
        words["workers"] = scgd.Workers(words.get("workers", 1), **own)
    own = {name: words.pop(name) for name in REPORTING if name in words}
    if own:
        words["reporting"] = scgd.Reporting(**own)
    return words
