"""How far what eager computes moves when its operators round otherwise, which says how exact it is."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

TIMES, SEEDS_APART = 8, 1001
#: Of the table in docs/fuzz.md: an element may differ by so many times as much as it moves.
TIMES_AS_FAR = 16


@cache
def library() -> ctypes.CDLL:
    build = Path(os.environ.get("TANDEM_BUILD_DIR", "build"))
    return ctypes.CDLL(str(build / "tests" / "libtandem_shaken.so"))


@contextmanager
def shaken(seed: int) -> Iterator[None]:
    library().tandem_shake(ctypes.c_uint64(seed))
    try:
        yield
    finally:
        library().tandem_stop_shaking()


Parts = list[Tensor]


def moves_of(seen: list[Parts], again: Callable[[], list[Parts]]) -> list[Parts]:
    """For each tensor that eager gave, in its dense parts, how far its elements move when eager is asked
    again; infinitely where one becomes another kind of number, or an integer another one."""
    moves = [[torch.zeros(part.shape, dtype=torch.float64) for part in parts] for parts in seen]
    for k in range(1, TIMES + 1):
        with shaken(k * SEEDS_APART):
            others = again()
        for known, parts, moved in zip(moves, seen, others):
            for i, (a, b) in enumerate(zip(parts, moved)):
                if a.shape == b.shape:
                    known[i] = torch.maximum(known[i], distance(a, b))
    return moves


def distance(a: Tensor, b: Tensor) -> Tensor:
    same = (a == b) | (a.isnan() & b.isnan())
    finite = a.isfinite() & b.isfinite() & torch.tensor(a.is_floating_point())
    far = (b.double() - a.double()).abs().masked_fill(~finite, torch.inf)
    return far.masked_fill(same, 0.0)


def within(a: Tensor, b: Tensor, moves: Tensor) -> bool:
    return bool((distance(a, b) <= moves * TIMES_AS_FAR).all())
