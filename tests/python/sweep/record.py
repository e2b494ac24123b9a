"""What was found out about one op or module, in a form that travels between processes, and
the sum of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .verdict import FAILED, Verdict


@dataclass(frozen=True)
class Limits:
    """How much of a subject is tried: samples a stage (none: all), seconds an op, and one stage,
    dtype or sample alone."""

    everything: bool = False
    seconds: float = 60.0
    stage: str | None = None
    dtype: str | None = None
    sample: int | None = None

    def wants(self, stage: str, dtype: str) -> bool:
        return self.stage in (None, stage) and self.dtype in (None, dtype)

    def chosen(self, count: int, limit: int) -> list[int]:
        """The first half of `limit` positions and the other half spread over the rest."""
        if self.sample is not None:
            return [self.sample] if self.sample < count else []
        if self.everything or count <= limit:
            return list(range(count))
        head = (limit + 1) // 2
        tail = limit - head
        return list(range(head)) + [head + (count - head) * i // tail for i in range(tail)]


@dataclass
class Record:
    """The verdicts on the samples of one op or module."""

    name: str
    seconds: float = 0.0
    note: str = ""
    statuses: Counter = field(default_factory=Counter)
    stages: Counter = field(default_factory=Counter)
    reasons: Counter = field(default_factory=Counter)
    again: int = 0
    not_chosen: int = 0
    out_of_time: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self, verdict: Verdict, stage: str, dtype: str, sample: int, keywords: dict[str, Any] | None = None
    ) -> None:
        self.statuses[verdict.status] += 1
        self.stages[f"{stage} {dtype}"] += 1
        self.again += verdict.again
        if verdict.status == FAILED:
            case = {
                "name": self.name,
                "stage": stage,
                "dtype": dtype,
                "sample": sample,
                "reason": verdict.reason,
            }
            case["keywords"] = [
                f"{name}={value}" for name, value in (keywords or {}).items() if isinstance(value, str)
            ]
            self.failures.append(case)
        elif verdict.reason:
            self.reasons[f"{verdict.status}: {verdict.reason}"] += 1

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Record:
        counted = {key: Counter(data[key]) for key in ("statuses", "stages", "reasons")}
        return cls(**{**data, **counted})


#: Told of each case before it starts, so that what a dying process was doing is known.
Announce = Callable[[str], None]
