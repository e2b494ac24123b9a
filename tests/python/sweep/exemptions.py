"""Reads the one file that says what the sweeps excuse, and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("exemptions.txt")


@dataclass(frozen=True)
class Exemption:
    """Excuses failures of one name, where it says so only of samples with this keyword argument."""

    reason: str
    keyword: str = ""

    def covers(self, case: dict[str, Any]) -> bool:
        return not self.keyword or self.keyword in case["keywords"]


def exemptions(kind: str, known: set[str]) -> dict[str, Exemption]:
    """By name, of the lines `KIND NAME [KEYWORD=VALUE]: REASON`; a name that the database does not
    have is an error."""
    result = {}
    for number, line in enumerate(FILE.read_text().splitlines(), 1):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        words, _, reason = line.partition(": ")
        which, _, subject = words.partition(" ")
        name, _, keyword = subject.partition(" ")
        if which not in ("op", "module") or not reason.strip() or (keyword and "=" not in keyword):
            raise ValueError(
                f"{FILE.name}:{number}: a line is 'op NAME: REASON' or 'module NAME: REASON', "
                f"with KEYWORD=VALUE behind the name where only such samples are meant, not {line!r}"
            )
        if which == kind and name not in known:
            raise ValueError(f"{FILE.name}:{number}: there is no {kind} {name!r}")
        if which == kind:
            result[name] = Exemption(reason.strip(), keyword)
    return result
