"""Runs one case through one door and beside it in eager, in this process."""

from __future__ import annotations

import os
import re
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from .compare import Difference
from .doors import Calls, Door
from .environments import ROOT, version_of
from .registry import Case, Observation, cases

EQUAL, ROUNDING, DIFFERENT, ERROR = "equal", "rounding", "different", "error"
EAGER_FAILS, DYNAMO_FAILS = "fails in eager", "fails in Dynamo"
SETTLED = 3  # from the step after this one on everything should be compiled


@dataclass
class Record:
    """What came of a case at a door."""

    case: str
    door: str
    verdict: str = ERROR
    note: str = ""  # where they differ, or the error
    largest: float = 0.0
    steps: int = 0
    calls: int = 0  # of compiled functions
    uncompiled: int = 0  # of these ran as they are
    settled_uncompiled: int = 0  # of these after the third step
    traces: int = 0
    graphs: int = 0  # of Dynamo's
    first_step: float = 0.0
    eager_first_step: float = 0.0
    reasons: list[str] = field(default_factory=list)
    breaks: list[str] = field(default_factory=list)
    alone: str = ""  # what Dynamo gives without Tandem: "equal" to the same bits, or its error
    version: str = ""


@contextmanager
def log_of_compiles() -> Iterator[list[str]]:
    """What is written to stderr meanwhile, line by line when it is over; it is shown too."""
    lines: list[str] = []
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        outer = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(outer, 2)
            os.close(outer)
            file.seek(0)
            lines += file.read().splitlines()
            os.write(2, "".join(line + "\n" for line in lines).encode())


def observe(case: Case, door: Door) -> Iterator[tuple[Observation, float]]:
    """What each step shows, and when it was over."""
    torch.manual_seed(0)
    for seen in case(door):
        yield seen, time.monotonic()


def judge(name: str, door_name: str) -> Record:
    torch.set_num_threads(1)
    case, record = cases()[name], Record(name, door_name, version=version_of(name.split(".")[0]))
    want: list[Observation] = []
    eager = Door("eager")
    try:
        next(observe(case, Door("eager")))  # libraries compute some things once, and in another way
        for seen, now in observe(case, eager):
            want.append(seen)
            record.eager_first_step = record.eager_first_step or now - eager.made_at
    except Exception as error:
        traceback.print_exc()
        record.verdict, record.note = EAGER_FAILS, described(error)
        return record
    with log_of_compiles() as log:
        got = run_compiled(case, record)
    record.reasons = reasons_in(log)
    difference = Difference(got, want)
    if record.verdict != ERROR:
        record.verdict = (
            EQUAL if not difference.largest else ROUNDING if difference.is_rounding else DIFFERENT
        )
        record.note, record.largest = difference.where, difference.largest
    if door_name == "dynamo":
        look_at_dynamo(case, record, got)
    return record


def run_compiled(case: Case, record: Record) -> list[Observation]:
    import tandem

    tandem.reset()
    door, settled, got = Door(record.door), 0, []
    record.verdict = ""
    with Calls() as calls:
        try:
            for seen, now in observe(case, door):
                got.append(seen)
                record.first_step = record.first_step or now - door.made_at
                if len(got) == SETTLED:
                    settled = tandem.counters()["ran_uncompiled"]
        except Exception as error:
            traceback.print_exc()
            record.verdict, record.note = ERROR, f"step {len(got) + 1}: {described(error)}"
    counters = tandem.counters()
    record.calls, record.uncompiled = calls.count, counters["ran_uncompiled"]
    record.traces = counters["trace"]
    record.settled_uncompiled = record.uncompiled - settled if len(got) > SETTLED else 0
    record.steps = len(got)
    return got


def look_at_dynamo(case: Case, record: Record, got: list[Observation]) -> None:
    """Graphs, and whether a difference is there without Tandem too."""
    from torch._dynamo.utils import counters

    record.graphs = counters["stats"]["unique_graphs"]
    record.breaks = sorted({reason.strip().splitlines()[0] for reason in counters["graph_break"]})
    if record.verdict == EQUAL:
        return
    torch._dynamo.reset()
    try:
        alone = [seen for seen, _ in observe(case, Door("dynamo-alone"))]
    except Exception as error:
        record.alone = described(error)
        record.verdict = DYNAMO_FAILS if record.verdict == ERROR else record.verdict
    else:
        record.alone = "equal" if record.verdict != ERROR and not Difference(got, alone).largest else ""


def described(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).strip() or '?').splitlines()[0]}"


def reasons_in(log: list[str]) -> list[str]:
    """Why functions run as they are, each once, without the folders and the names of graphs."""
    found = (
        re.search(r"(?:compile|warning): .*?: runs as it is(?:: | from now on, since )(.*?)(; |$)", line)
        for line in log
    )
    place = rf"(?<=called at )(\S*/site-packages/|{ROOT}/)| \(called at <eval_with_key>\S*\)| at 0x[0-9a-f]+"
    return sorted({re.sub(place, "", match[1]) for match in found if match})
