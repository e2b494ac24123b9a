"""The command line of the sweeps."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from . import document, self_test
from .exemptions import exemptions
from .record import Announce, Limits, Record
from .subject import STAND_INS, Subject, subject_named
from .totals import Totals
from .workers import serve, sweep_in_processes

Sweep = Callable[[str, Subject, Limits, Announce], Record]


def database(kind: str) -> tuple[list[str], Sweep]:
    """The names in a database and what sweeps one of them; imported here because it takes seconds."""
    if kind == "op":
        from .op_sweep import OPS, sweep_op

        return list(OPS), sweep_op
    from .module_sweep import MODULES, sweep_module

    return list(MODULES), sweep_module


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="python -m tests.python.sweep", description=__doc__)
    commands = result.add_subparsers(dest="command", required=True)
    for command, kind in (("ops", "op"), ("modules", "module")):
        sub = commands.add_parser(command, help=f"compares every {kind} of {kind}_db with eager")
        sub.set_defaults(kind=kind)
        sub.add_argument(
            f"--{kind}", dest="names", action="append", help="only this one, in this process; may be repeated"
        )
        sub.add_argument("--sample", type=int, help="only the sample with this number")
        sub.add_argument("--dtype", help="only this dtype, such as float32")
        sub.add_argument("--stage", help="function, inplace, view, method, second; train, eval")
        sub.add_argument("--all", action="store_true", help="every sample of every stage; takes long")
        sub.add_argument(
            "--seconds",
            type=float,
            default=60.0,
            help="the most one may take before its other samples are left out",
        )
        sub.add_argument("--shard", default="1/1", help="i/n: the i-th of n parts, by name")
        sub.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time")
        sub.add_argument(
            "--json", action="store_true", help="a JSON line for each failing case, and one with the totals"
        )
        sub.add_argument("--document", type=Path, help="writes the totals into this page")
        sub.add_argument("--backend", default="eager")
        sub.add_argument("--subject", default="tandem", choices=["tandem", *STAND_INS], help="what is judged")
    worker = commands.add_parser("worker")
    worker.add_argument("kind")
    worker.add_argument("limits")
    worker.add_argument("--backend", default="eager")
    worker.add_argument("--subject", default="tandem")
    commands.add_parser("self-test", help="shows that wrong stand-ins are noticed")
    return result


def work(arguments: argparse.Namespace) -> int:
    torch.set_num_threads(1)
    _, sweep = database(arguments.kind)
    subject, limits = (
        subject_named(arguments.subject, arguments.backend),
        Limits(**json.loads(arguments.limits)),
    )
    serve(lambda name, announce: sweep(name, subject, limits, announce))
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Sweeps, prints the totals, and says whether all is well."""
    torch.set_num_threads(1)
    begin = time.monotonic()
    known, sweep = database(arguments.kind)
    excused = exemptions(arguments.kind, set(known))
    seconds = 3600.0 if arguments.all else arguments.seconds
    limits = Limits(arguments.all, seconds, arguments.stage, arguments.dtype, arguments.sample)
    totals = Totals(arguments.kind, excused)
    if arguments.names:
        subject = subject_named(arguments.subject, arguments.backend)
        records = (
            sweep(name, subject, limits, lambda case: None) for name in checked(arguments.names, known)
        )
    else:
        options = ["--backend", arguments.backend, "--subject", arguments.subject]
        names = sharded(known, arguments.shard)
        records = sweep_in_processes(arguments.kind, names, limits, options, arguments.jobs)
    for record in records:
        totals.add(record)
        if sys.stderr.isatty():
            print(
                f"\r{len(totals.records)} {arguments.kind}s, {len(totals.failures)} failures",
                end="",
                file=sys.stderr,
            )
    totals.seconds = time.monotonic() - begin
    report(totals, arguments)
    return 0 if totals.passed() else 1


def checked(names: list[str], known: list[str]) -> list[str]:
    for name in names:
        if name not in known:
            near = [k for k in known if name in k]
            raise SystemExit(
                f"there is no {name!r} in the database; these are near: {', '.join(near[:20]) or 'none'}"
            )
    return names


def sharded(names: list[str], shard: str) -> list[str]:
    part, parts = map(int, shard.split("/"))
    return names[part - 1 :: parts]


def report(totals: Totals, arguments: argparse.Namespace) -> None:
    if arguments.json:
        for case in totals.failures:
            print(json.dumps(case))
        print(json.dumps({label.strip(): value for label, value in totals.table()}))
    else:
        print(totals.text())
    if arguments.document:
        document.write(totals, arguments.document, " ".join(sys.argv[1:]))


def main() -> int:
    arguments = parser().parse_args()
    if arguments.command == "worker":
        return work(arguments)
    if arguments.command == "self-test":
        return self_test.run()
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
