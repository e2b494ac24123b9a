"""Shows that the sweep can fail: each stand-in is wrong in one way, and must be caught by an
op that shows it."""

from __future__ import annotations

from .record import Limits, Record
from .subject import STAND_INS, StandIn

#: Stand-in, op, stage: where its fault shows.
CAUGHT = [
    ("one_bit", "sin", "function"),
    ("one_bit", "sin", "second"),
    ("detached", "sin", "function"),
    ("detached", "sin", "second"),
    ("cloned", "transpose", "function"),
    ("cloned", "sin", "inplace"),
    ("cloned", "transpose", "view"),
    ("restrided", "sin", "function"),
    ("random", "nn.functional.dropout", "function"),
    ("listed", "sort", "function"),
    ("remembered", "mul", "function"),
    ("writing", "add", "function"),
    ("patient", "add", "inplace"),
    ("second_scaled", "tanh", "second"),
]
#: What the original itself must pass, each in all its stages.
CLEAN = ["sin", "transpose", "mul", "add", "sort", "svd", "nn.functional.dropout", "empty_like", "nonzero"]


def run() -> int:
    """Prints what was and was not noticed; 0 when all was."""
    from .op_sweep import sweep_op

    def swept(stand_in: str, op: str, stage: str | None) -> Record:
        return sweep_op(op, StandIn(STAND_INS[stand_in]), Limits(stage=stage), lambda case: None)

    wrong = 0
    for stand_in, op, stage in CAUGHT:
        failures = swept(stand_in, op, stage).failures
        wrong += not failures
        reason = failures[0]["reason"] if failures else ""
        print(f"{'noticed' if failures else 'NOT NOTICED':12} {stand_in:14} {op} {stage}: {reason}")
    for op in CLEAN:
        failures = swept("original", op, None).failures
        wrong += bool(failures)
        print(
            f"{'FAILS' if failures else 'passes':12} {'original':14} {op}: {failures[0] if failures else ''}"
        )
    return 1 if wrong else 0
