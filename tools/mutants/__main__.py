"""Do the tests notice? Change one place of a formula at a time and run the tests that see it.

``python tools/mutants [NAMES]`` takes a seeded sample of places of every file of the named groups
or files, keeps its results in ``.mutants/`` (so that it goes on where it was stopped, and repeats
only what a changed test or source could change), and prints survivors and the share noticed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"  # before anything imports numba: kernels are mutated too

from covering import LONGEST, Record, recorded
from groups import GROUPS, Group
from judging import Work, judge
from places import Mutant, sample

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".mutants"
ENOUGH = 10.0
"""Seconds of tests, the quickest first, that a mutant is shown."""


def checksum(paths: list[Path]) -> str:
    """Name a state of some files."""
    state = hashlib.sha256()
    for path in sorted(paths):
        state.update(path.read_bytes())
    return state.hexdigest()[:12]


def equivalents() -> dict[tuple[str, str, int, str], str]:
    """Return the changes that change nothing, each with its reason."""
    rows = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text())["equivalent"]
    names = ("file", "line", "column", "change")
    return {tuple(row[name] for name in names): row["reason"] for row in rows}  # type: ignore[misc]


class Results:
    """What is known of every mutant, in a file that is replaced after each new answer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def status(self, mutant: Mutant, source: str, tests: str) -> str | None:
        """Return what was found for this source; a survivor of other tests is tried again."""
        entry = self.known.get(mutant.file, {})
        found = entry.get("mutants", {}).get(mutant.key) if entry.get("source") == source else None
        if found is None or (found["status"] == "survived" and found["tests"] != tests):
            return None
        return str(found["status"])

    def seconds(self, mutant: Mutant) -> float:
        """Return the processor seconds that its last answer took, in whichever run."""
        found = self.known.get(mutant.file, {}).get("mutants", {}).get(mutant.key, {})
        return float(found.get("seconds", 0.0))

    def note(
        self, mutant: Mutant, source: str, tests: str, status: str, seconds: float = 0.0
    ) -> None:
        """Keep an answer."""
        entry = self.known.setdefault(mutant.file, {"source": source, "mutants": {}})
        if entry["source"] != source:
            entry.update(source=source, mutants={})
        entry["mutants"][mutant.key] = {
            "status": status, "tests": tests, "line": mutant.text, "seconds": round(seconds, 2),
        }  # fmt: skip
        fresh = self.path.with_suffix(".tmp")
        fresh.write_text(json.dumps(self.known, indent=1))
        fresh.replace(self.path)


def tests_of(mutant: Mutant, record: Record) -> tuple[list[str], float]:
    """Return the tests that run the line, all of them where it runs at import; and their time."""
    tests = [(s, t, files.get(mutant.file, ())) for t, (s, files) in record.tests.items()]
    seeing = [(s, t) for s, t, lines in tests if mutant.line in lines]
    seeing = seeing or [(s, t) for s, t, _ in tests]
    chosen, spent = [], 0.0
    for seconds, test in sorted(seeing):
        if spent + seconds > ENOUGH:
            break
        chosen.append(test)
        spent += seconds
    return chosen, spent


def thinned(
    places: dict[str, list[Mutant]], most: int | None, seed: int
) -> dict[str, list[Mutant]]:
    """Return a seeded sample over all files; a larger one contains the smaller ones."""
    everything = [mutant for mutants in places.values() for mutant in mutants]
    random.Random(seed).shuffle(everything)
    kept = set(everything[:most])
    return {file: [m for m in mutants if m in kept] for file, mutants in places.items()}


def run_group(group: Group, files: list[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Judge the mutants of some files of a group; return a row per file."""
    group = replace(group, tests=tuple(options.tests)) if options.tests else group
    helpers = [path for path in ROOT.glob("tests/*.py") if not path.name.startswith("test_")]
    tests = checksum([*helpers, *(ROOT / name for name in (*group.tests, *group.files(ROOT)))])
    sources = group.files(ROOT)  # with their examples
    record = recorded(FOLDER / f"{group.name}-{tests}.json", sources, [*group.tests, *sources])
    results, same = Results(FOLDER / f"{group.name}.json"), equivalents()
    chosen, work = {}, []
    places = {file: sample(ROOT / file, ROOT, options.places, options.seed) for file in files}
    for file, mutants in thinned(places, options.most, options.seed).items():
        source = checksum([ROOT / file])
        chosen[file] = (mutants, source)
        for mutant in mutants:
            if mutant.name in same:
                continue
            if results.status(mutant, source, tests) is None:
                names, spent = tests_of(mutant, record)
                imported = mutant.line in record.imported.get(file, ())
                work.append(Work(mutant, names, 10.0 + 3.0 * spent, imported))
    untested = [piece.mutant for piece in work if not piece.tests]
    for mutant in untested:
        results.note(mutant, chosen[mutant.file][1], tests, "survived")
    tested = [piece for piece in work if piece.tests]
    for i, (mutant, status, spent) in enumerate(judge(ROOT, tested, options.jobs), 1):
        results.note(mutant, chosen[mutant.file][1], tests, status, spent)
        print(f"{i}/{len(tested)} {mutant.file}:{mutant.line} {status} {spent:.1f} s", flush=True)
    rows = [row(file, *chosen[file], results, tests, same) for file in files]
    rows[0]["seconds"] += record.seconds
    return rows


def row(
    file: str, mutants: list[Mutant], source: str, results: Results, tests: str, same: Any
) -> dict[str, Any]:
    """Sum up a file."""
    counted = [m for m in mutants if m.name not in same]
    alive = [m for m in counted if results.status(m, source, tests) == "survived"]
    seconds = sum(results.seconds(mutant) for mutant in counted)
    n, n_same = len(counted), len(mutants) - len(counted)
    return {"file": file, "n": n, "same": n_same, "alive": alive, "seconds": seconds}


def show(rows: list[dict[str, Any]]) -> None:
    """Print survivors, the share that was noticed, and the time of it all, in however many runs."""
    for found in rows:
        for mutant in found["alive"]:
            print(f"{mutant.file}:{mutant.line}  column {mutant.column}  {mutant.change}")
            print(f"    {mutant.text}")
    print(f"{'file':44} places equivalent noticed")
    for found in [*rows, total(rows)]:
        noticed = 1.0 - len(found["alive"]) / found["n"] if found["n"] else 1.0
        print(f"{found['file']:44} {found['n']:6} {found['same']:10} {noticed:7.0%}")
    minutes = total(rows)["seconds"] / 60
    print(f"{minutes:.1f} processor minutes, with those of earlier runs and of recording")


def total(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up the files."""
    alive = [mutant for found in rows for mutant in found["alive"]]
    counts = {name: sum(found[name] for found in rows) for name in ("n", "same", "seconds")}
    return {"file": "all", "alive": alive, **counts}


def main() -> int:
    """Run the groups or files named on the command line, or all."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="groups, or files relative to the repository")
    parser.add_argument("--places", type=int, default=40, help="places per file")
    parser.add_argument("--most", type=int, help="places per group, over all its files (no limit)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tests", nargs="*", help="show mutants to these files of tests alone")
    parser.add_argument("--least", type=float, default=0.9, help="share that must be noticed")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    FOLDER.mkdir(exist_ok=True)
    rows: list[dict[str, Any]] = []
    taken: set[str] = set()  # a file belongs to the first group that names it
    for group in GROUPS:
        files = [f for f in group.files(ROOT) if f not in taken]
        taken.update(files)
        asked = [f for f in files if group.asked(f, options.names)]
        if asked:
            rows += run_group(group, asked, options)
    if not rows:
        parser.error(f"nothing is called {options.names}; groups: {[g.name for g in GROUPS]}")
    show(rows)
    everything = total(rows)
    return int(len(everything["alive"]) > (1.0 - options.least) * everything["n"])


assert ENOUGH > LONGEST
if __name__ == "__main__":
    sys.exit(main())
