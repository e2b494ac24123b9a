"""Sweeps names in processes of their own, so that one that dies or hangs costs one name and is reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from queue import Queue

from .record import Limits, Record
from .verdict import FAILED, Verdict

#: Beyond the time an op may take: its longest single sample and the start of a process.
GRACE_SECONDS = 120.0


class Worker:
    """A process that sweeps one name at a time."""

    def __init__(self, kind: str, options: list[str], limits: Limits) -> None:
        self.limits = limits
        command = [sys.executable, "-m", __package__, "worker", kind, json.dumps(asdict(limits)), *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def sweep(self, name: str) -> Record | None:
        """The record of one name, or none when the process died of it."""
        self.last = name
        assert self.process.stdin and self.process.stdout
        watchdog = threading.Timer(self.limits.seconds + GRACE_SECONDS, self.process.kill)
        watchdog.start()
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                kind, _, text = line.rstrip("\n").partition(" ")
                if kind == "@case":
                    self.last = text
                elif kind == "@record":
                    return Record.from_json(json.loads(text))
        except BrokenPipeError:
            pass
        finally:
            watchdog.cancel()
        return None

    def close(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()


def sweep_in_processes(
    kind: str, names: list[str], limits: Limits, options: list[str], jobs: int
) -> Iterator[Record]:
    """Records as they come, from `jobs` processes."""
    idle: Queue[Worker] = Queue()

    def swept(name: str) -> Record:
        worker = idle.get() if not idle.empty() else Worker(kind, options, limits)
        record = worker.sweep(name)
        if record is None:
            worker.close()
            return died(name, worker)
        idle.put(worker)
        return record

    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(swept, name) for name in names]):
            yield future.result()
    while not idle.empty():
        idle.get().close()


def died(name: str, worker: Worker) -> Record:
    record = Record(name)
    words = worker.last.removeprefix(name).split()
    stage, dtype, sample = words if len(words) == 3 else ("", "", "-1")
    record.add(
        Verdict(FAILED, f"the process ended with {worker.process.returncode}"), stage, dtype, int(sample)
    )
    return record


def serve(sweep: Callable[[str, Callable[[str], None]], Record]) -> None:
    """The worker's side: names come in on lines, cases and records go out on lines."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is not part of the answers

    def say(kind: str, text: str) -> None:
        out.write(f"{kind} {text}\n")
        out.flush()

    for line in sys.stdin:
        record = sweep(line.strip(), lambda case: say("@case", case))
        say("@record", json.dumps(record.as_json()))
