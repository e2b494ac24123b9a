"""Puts the totals of a sweep into a page of the documentation, between two marks."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from .totals import Totals
from .verdict import REFUSED, UNCOMPILED


def write(totals: Totals, page: Path, command: str) -> None:
    """Replaces what stands between the marks of this kind of sweep."""
    begin, end = f"<!-- {totals.kind} totals -->", f"<!-- end of {totals.kind} totals -->"
    text = page.read_text()
    if begin not in text or end not in text:
        raise SystemExit(f"{page} has no place for the totals: it needs a line '{begin}' and a line '{end}'")
    block = f"{begin}\n{rendered(totals, command)}\n{end}"
    page.write_text(re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: block, text, flags=re.DOTALL))


def rendered(totals: Totals, command: str) -> str:
    shown = re.sub(r" ?--document \S+", "", command)
    lines = [
        f"`python -m tests.python.sweep {shown}` with PyTorch {torch.__version__}:",
        "",
        "| | |",
        "|---|---:|",
    ]
    for label, value in totals.table():
        lines.append(f"| {'&nbsp;&nbsp;' if label.startswith('  ') else ''}{label.strip()} | {value} |")
    for status, title in ((UNCOMPILED, "Why samples ran uncompiled"), (REFUSED, "Why samples were refused")):
        why = totals.why(status)
        lines += (
            ["", f"{title}:", "", f"| samples | {totals.kind}s | reason |", "|---:|---:|---|"] if why else []
        )
        lines += [f"| {count} | {len(names)} | {text.replace('|', '/')} |" for text, count, names in why]
    return "\n".join(lines)
