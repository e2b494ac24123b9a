"""Reads the one file that says what the sweeps excuse, and why."""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).with_name("exemptions.txt")


def exemptions(kind: str, known: set[str]) -> dict[str, str]:
    """Reason by name, of the lines `KIND NAME: REASON`; a name that the database does not have is an error."""
    result = {}
    for number, line in enumerate(FILE.read_text().splitlines(), 1):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        words, _, reason = line.partition(": ")
        which, _, name = words.partition(" ")
        if which not in ("op", "module") or not reason.strip():
            raise ValueError(f"{FILE.name}:{number}: a line is 'op NAME: REASON' or 'module NAME: REASON', not {line!r}")
        if which == kind and name not in known:
            raise ValueError(f"{FILE.name}:{number}: there is no {kind} {name!r}")
        if which == kind:
            result[name] = reason.strip()
    return result
