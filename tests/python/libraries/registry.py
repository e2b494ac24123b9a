"""The cases by name. Libraries are imported inside of them, since they are listed where there are none."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

import torch

from .doors import Door

#: What can be compared after a step, by name.
Observation = dict[str, torch.Tensor]
Case = Callable[[Door], Iterator[Observation]]

MODULES = (
    "transformers_cases",
    "generation_cases",
    "structure_cases",
    "probability_cases",
    "vision_cases",
    "optimizer_cases",
)
_cases: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    """Enters a case under `name`, which begins with its library."""

    def enter(function: Case) -> Case:
        assert name not in _cases, name
        _cases[name] = function
        return function

    return enter


def cases() -> dict[str, Case]:
    for module in MODULES:
        importlib.import_module(f"{__package__}.{module}")
    return _cases
