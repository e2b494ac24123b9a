"""Trains small models of libraries side by side with eager."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from . import document
from .doors import DOORS
from .environments import FOLDER, ROOT, python_of
from .judge import DIFFERENT, ERROR, Record, judge
from .registry import cases

RECORDS = FOLDER / "records"


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="python -m tests.python.libraries", description=__doc__)
    result.add_argument("--list", action="store_true", help="the names of the cases")
    result.add_argument(
        "--case",
        dest="names",
        action="append",
        help="only this one, or those that begin with it and a dot; may be repeated",
    )
    result.add_argument(
        "--door",
        choices=[*DOORS, "dynamo-alone"],
        help="only this one; dynamo-alone is Dynamo without Tandem",
    )
    result.add_argument("--seconds", type=float, default=400.0, help="the most a case may take at a door")
    result.add_argument(
        "--document", type=Path, help="writes this page of all records, earlier ones included"
    )
    result.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    return result


def run_alone(name: str, door: str, seconds: float) -> Record:
    """In a process of the library's environment: one that dies or hangs is a record too."""
    # By a shorter name: libraries bring packages of the name `tests`.
    command = ["-m", "libraries", "--here", "--case", name, "--door", door]
    paths = [str(ROOT / "build" / "python"), str(ROOT / "tests" / "python"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TANDEM_CACHE": "off",
        "TANDEM_LOGS": "compile",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    record = Record(name, door)
    try:
        python = python_of(name.split(".")[0])
        done = subprocess.run(
            [python, *command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as late:
        record.note = f"took more than {seconds:.0f} s"
        (RECORDS / f"{name}.{door}.log").write_bytes(late.stderr or b"")
        return record
    except subprocess.CalledProcessError:
        record.note = "the library could not be installed"
        return record
    (RECORDS / f"{name}.{door}.log").write_text(done.stderr)
    answers = [
        line.removeprefix("@record ") for line in done.stdout.splitlines() if line.startswith("@record ")
    ]
    if answers:
        return Record(**json.loads(answers[-1]))
    last = done.stderr.strip().splitlines()[-1:] or [""]
    record.note = f"the process ended with {done.returncode}: {last[0]}"
    return record


def summary(record: Record) -> str:
    result = f"{record.verdict:9} {record.largest:7.0e}  uncompiled {record.uncompiled:2} of {record.calls:2}"
    return f"{result}, late {record.settled_uncompiled:2}  {record.note} {'; '.join(record.reasons)}"[:300]


def main() -> int:
    arguments = parser().parse_args()
    wanted = [
        name
        for name in cases()
        if not arguments.names or any(name == n or name.startswith(n + ".") for n in arguments.names)
    ]
    if arguments.names and not wanted:
        raise SystemExit(f"there is no case {', '.join(arguments.names)}; --list lists them")
    if arguments.list:
        print("\n".join(wanted))
        return 0
    doors = [arguments.door] if arguments.door else list(DOORS)
    if arguments.here:
        print("@record", json.dumps(asdict(judge(wanted[0], doors[0]))), flush=True)
        return 0
    RECORDS.mkdir(parents=True, exist_ok=True)
    bad = 0
    for name in wanted:
        for door in doors:
            begin = time.monotonic()
            record = run_alone(name, door, arguments.seconds)
            bad += record.verdict in (ERROR, DIFFERENT)
            print(f"{name:40} {door:12} {summary(record)}  {time.monotonic() - begin:4.0f} s", flush=True)
            if door in DOORS:
                (RECORDS / f"{name}.{door}.json").write_text(json.dumps(asdict(record)))
    if arguments.document:
        known = {(record.case, record.door): record for record in document.load(RECORDS)}
        document.write(
            [known[name, door] for name in cases() for door in DOORS if (name, door) in known],
            arguments.document,
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
