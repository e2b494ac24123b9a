"""How far two runs of a case are apart."""

from __future__ import annotations

import torch

from .registry import Observation

#: What rounding may come to after some steps of training, which make differences grow.
ROUNDING = {
    torch.float64: 1e-9,
    torch.complex128: 1e-9,
    torch.float32: 1e-3,
    torch.complex64: 1e-3,
    torch.bfloat16: 5e-2,
    torch.float16: 5e-2,
}


class Difference:
    """The largest between two runs, relative to the largest number in its tensor."""

    def __init__(self, got: list[Observation], want: list[Observation]) -> None:
        self.largest, self.is_rounding, self.where = 0.0, True, ""
        for step, (one, other) in enumerate(zip(got, want, strict=False), 1):
            self._compare(one, other, f"step {step}")
        if len(got) != len(want):
            self._add(float("inf"), False, f"{len(got)} steps, not {len(want)}")

    def _compare(self, got: Observation, want: Observation, step: str) -> None:
        if got.keys() != want.keys():
            missing = sorted(got.keys() ^ want.keys())
            self._add(float("inf"), False, f"{step}: only one of them has {', '.join(missing[:3])}")
        for name in got.keys() & want.keys():
            a, b = got[name], want[name]
            if (a.dtype, a.shape) != (b.dtype, b.shape):
                what = f"{a.dtype} {list(a.shape)}, not {b.dtype} {list(b.shape)}"
                self._add(float("inf"), False, f"{step}: {name} is {what}")
            elif not _is_same(a, b):
                distance = _distance(a, b)
                self._add(distance, distance <= ROUNDING.get(b.dtype, 0.0), f"{step}: {name}")

    def _add(self, distance: float, is_rounding: bool, where: str) -> None:
        self.is_rounding &= is_rounding
        if distance > self.largest:
            self.largest, self.where = distance, where


def _is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bit for bit, but for the bits of NaN."""
    if torch.equal(a, b):
        return True
    both = a.isnan() & b.isnan()
    return torch.equal(a.masked_fill(both, 0), b.masked_fill(both, 0))


def _distance(a: torch.Tensor, b: torch.Tensor) -> float:
    if not (a.is_floating_point() or a.is_complex()):
        return float("inf")
    wide = torch.complex128 if a.is_complex() else torch.float64
    a, b = a.to(wide), b.to(wide)
    distance = ((a - b).abs().max() / b.abs().max().clamp_min(1e-30)).item()
    return distance if distance == distance else float("inf")
