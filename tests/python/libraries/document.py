"""docs/libraries.md, made of what was recorded."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import torch

from .doors import DOORS
from .judge import DIFFERENT, DYNAMO_FAILS, EAGER_FAILS, EQUAL, ERROR, ROUNDING, SETTLED, Record

INTRODUCTION = """# Libraries

Small models of libraries that know nothing of Tandem, with random weights, run side by side with eager
through both doors: `tandem.compile` (compile) and `torch.compile(backend="tandem")` (dynamo). The page is
written by the first of

```sh
python -m tests.python.libraries --document docs/libraries.md   # installs each library in build/libraries
python -m tests.python.libraries --list
python -m tests.python.libraries --case transformers.gpt2 --door compile
```

A case trains by AdamW for some steps, each on new data of the same shape, or generates. Losses, gradients,
parameters and buffers, or tokens, are compared after every step.

- **Equal** is bit for bit. **Rounding** comes with the largest difference, relative to the largest number
  in its tensor: told that they are compiled, libraries go other ways through their code, and gradients that
  meet outside of compiled graphs are added in another order.
- **Uncompiled** are calls that ran the original, of all calls of what was compiled, and how many of them
  came after the third step.
- **First step** is what tracing, compiling and running it takes, in seconds, and what eager takes.
"""
HEAD = """
| case | door | result | uncompiled | after the third step | traces | first step (eager) | notes |
|---|---|---|---:|---:|---:|---:|---|"""


def write(records: list[Record], page: Path) -> None:
    page.write_text(rendered(records))


def rendered(records: list[Record]) -> str:
    versions = {record.case.split(".")[0]: record.version for record in records if record.version}
    versions["torch"] = torch.__version__
    lines = [INTRODUCTION, wrapped(", ".join(" ".join(item) for item in sorted(versions.items())) + ":"), ""]
    lines += ["| | " + " | ".join(DOORS) + " |", "|---|" + "---:|" * len(DOORS)]
    for label, holds in TOTALS.items():
        counts = (str(sum(r.door == door and holds(r) for r in records)) for door in DOORS)
        lines.append(f"| {label} | " + " | ".join(counts) + " |")
    notes: dict[str, int] = {}
    lines += [HEAD, *("| " + " | ".join(row(record, notes)) + " |" for record in records)]
    lines += ["", "Notes:", "", *(wrapped(f"{number}. {text}", "   ") for text, number in notes.items())]
    return "\n".join(lines) + "\n"


TOTALS = {
    "equal": lambda r: r.verdict == EQUAL,
    "rounding": lambda r: r.verdict == ROUNDING,
    "different": lambda r: r.verdict == DIFFERENT,
    "error": lambda r: r.verdict == ERROR,
    "fails in eager": lambda r: r.verdict == EAGER_FAILS,
    "fails in Dynamo": lambda r: r.verdict == DYNAMO_FAILS,
    "all calls compiled after the third step": lambda r: (
        r.calls > 0 and r.steps > SETTLED and not r.settled_uncompiled
    ),
}


def row(record: Record, notes: dict[str, int]) -> list[str]:
    numbers = [str(notes.setdefault(plain(text), len(notes) + 1)) for text in remarks(record)]
    result = f"rounding, {record.largest:.0e}" if record.verdict == ROUNDING else record.verdict
    calls = f"{record.uncompiled} of {record.calls}"
    seconds = f"{record.first_step:.2f} ({record.eager_first_step:.2f})"
    settled, traces = str(record.settled_uncompiled), str(record.traces)
    return [record.case, record.door, result, calls, settled, traces, seconds, ", ".join(numbers)]


def remarks(record: Record) -> list[str]:
    texts = []
    if record.verdict in (DIFFERENT, ERROR, EAGER_FAILS, DYNAMO_FAILS):
        texts.append(f"{record.verdict}: {record.note}")
    if record.verdict == ROUNDING and record.alone == "equal":
        texts.append('The same bits as `torch.compile(backend="eager")`.')
    elif record.alone and record.alone != "equal":
        texts.append(f'`torch.compile(backend="eager")` fails too: {record.alone}')
    texts += [f"Runs as it is: {reason}" for reason in record.reasons]
    if record.breaks:
        texts.append("Dynamo breaks the graph: " + "; ".join(sorted(set(record.breaks))))
    if record.door == "dynamo" and not record.calls:
        texts.append("Dynamo makes no graph of it.")
    return texts


def plain(text: str) -> str:
    """On one line, with nothing that a table or a page would take for markup."""
    return " ".join(text.split()).replace("|", "/").replace("<", "&lt;")[:400]


def wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 110, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def load(folder: Path) -> list[Record]:
    """The records of earlier runs, so that some cases can be run again without the others."""
    return [Record(**json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]
