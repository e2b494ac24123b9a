"""The totals of a sweep as a table, and whether it passed."""

from __future__ import annotations

from collections import Counter, defaultdict

from .exemptions import Exemption
from .record import Record
from .verdict import PASSED, REFUSED, UNCOMPILED

MOST_EXEMPT = 0.03


class Totals:
    """Sums records, with failures of exempt names apart."""

    def __init__(self, kind: str, excused: dict[str, Exemption]) -> None:
        self.kind, self.excused, self.seconds = kind, excused, 0.0
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        self.records.append(record)

    def is_excused(self, case: dict) -> bool:
        return case["name"] in self.excused and self.excused[case["name"]].covers(case)

    @property
    def failures(self) -> list[dict]:
        return [case for r in self.records for case in r.failures if not self.is_excused(case)]

    @property
    def excused_failures(self) -> list[dict]:
        return [case for r in self.records for case in r.failures if self.is_excused(case)]

    @property
    def used_exemptions(self) -> dict[str, str]:
        return {case["name"]: self.excused[case["name"]].reason for case in self.excused_failures}

    @property
    def judged(self) -> list[Record]:
        return [r for r in self.records if r.statuses]

    def too_many_exempt(self) -> bool:
        return len(self.used_exemptions) > MOST_EXEMPT * max(len(self.judged), 1)

    def passed(self) -> bool:
        return not self.failures and not self.too_many_exempt()

    def needless(self) -> list[str]:
        """Exempt names whose exempt samples all passed."""
        used = self.used_exemptions
        return [r.name for r in self.records if r.name in self.excused and r.statuses and r.name not in used]

    def table(self) -> list[tuple[str, str]]:
        sums = sum((r.statuses for r in self.records), Counter())
        stages = sum((r.stages for r in self.records), Counter())
        exempt = Counter(self.used_exemptions.values())
        uncompiled = [r for r in self.records if r.statuses[UNCOMPILED]]
        rows = [
            (f"{self.kind}s in the database", str(len(self.records))),
            (f"{self.kind}s judged", str(len(self.judged))),
            ("samples", str(sum(sums.values()))),
            *(
                (f"  {stage}", str(count))
                for stage, count in sorted(stages.items(), key=lambda item: -item[1])
            ),
            ("passed, compiled", str(sums[PASSED])),
            ("passed, ran uncompiled", f"{sums[UNCOMPILED]} (of {len(uncompiled)} {self.kind}s)"),
            ("  called again on other data", str(sum(r.again for r in self.records))),
            ("refused as they should be", str(sums[REFUSED])),
            (f"{self.kind}s exempt", f"{len(self.used_exemptions)} ({len(self.excused_failures)} samples)"),
            *((f"  {reason}", str(count)) for reason, count in exempt.items()),
            (
                "failed",
                f"{len(self.failures)} (of {len({case['name'] for case in self.failures})} {self.kind}s)",
            ),
            ("left out by the short form", str(sum(r.not_chosen for r in self.records))),
            ("left out for lack of time", str(sum(r.out_of_time for r in self.records))),
            ("seconds", f"{self.seconds:.0f}"),
        ]
        return rows

    def why(self, status: str) -> list[tuple[str, int, list[str]]]:
        """For each reason of a status: how many samples, and of which names."""
        counts: Counter = Counter()
        names: dict[str, list[str]] = defaultdict(list)
        for record in self.records:
            for reason, count in record.reasons.items():
                kind, _, text = reason.partition(": ")
                if kind == status:
                    counts[text] += count
                    names[text].append(record.name)
        return [(text, count, names[text]) for text, count in counts.most_common()]

    def text(self) -> str:
        rows = self.table()
        width = max(len(label) for label, _ in rows) + 2
        lines = []
        for status, title in ((UNCOMPILED, "Ran uncompiled"), (REFUSED, "Refused as they should be")):
            why = self.why(status)
            lines += [f"{title}:"] if why else []
            lines += [f"  {count:6}  {text}  [{shortened(names)}]" for text, count, names in why]
        notes = [r for r in self.records if r.note]
        lines += ["Not judged, in whole or in part:"] if notes else []
        lines += [f"  {r.name}: {r.note}" for r in notes]
        late = [r for r in self.records if r.out_of_time]
        lines += ["Left out for lack of time:"] if late else []
        lines += [f"  {r.name}: {r.out_of_time} samples" for r in late]
        lines += ["Failures:"] if self.failures else []
        lines += [
            f"  {c['name']} {c['stage']} {c['dtype']} {c['sample']}: {c['reason']}" for c in self.failures
        ]
        lines += [
            f"The exemption of {name} is no longer needed: all its samples passed."
            for name in self.needless()
        ]
        if self.too_many_exempt():
            lines.append(f"More than {MOST_EXEMPT:.0%} of the {self.kind}s are exempt.")
        lines += [f"{label:{width}}{value}" for label, value in rows]
        return "\n".join(lines)


def shortened(names: list[str], limit: int = 8) -> str:
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f", and {rest} more" if rest > 0 else "")
