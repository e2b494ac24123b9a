"""torch's own optimisers: a whole training step in one compiled function, and an optimiser's step alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from .doors import Door
from .registry import Case, Observation, case
from .train import STEPS

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "sgd_momentum": lambda parameters: torch.optim.SGD(
        parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01
    ),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-2),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2),
    "adamw_foreach": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2, foreach=True),
    "adamw_fused": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2, fused=True),
}


def network() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 1)
    )


def seen(module: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> Observation:
    state = {
        f"{name} of {i}": value.detach().clone()
        for i, values in enumerate(optimizer.state.values())
        for name, value in values.items()
        if isinstance(value, torch.Tensor)
    }
    return {
        "loss": loss.detach().clone(),
        **{name: p.detach().clone() for name, p in module.named_parameters()},
        **state,
    }


def whole_step(make: Callable[..., Any]) -> Case:
    def run(door: Door) -> Iterator[Observation]:
        module = network()
        optimizer = make(module.parameters())

        def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            loss = (module(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        call = door(step)
        for i in range(STEPS):
            torch.manual_seed(i)
            yield seen(module, optimizer, call(torch.randn(8, 6), torch.randn(8, 1)))

    return run


def step_alone(make: Callable[..., Any]) -> Case:
    def run(door: Door) -> Iterator[Observation]:
        module = network()
        optimizer = make(module.parameters())
        step = door(lambda: optimizer.step())
        for i in range(STEPS):
            torch.manual_seed(i)
            loss = (module(torch.randn(8, 6)) - torch.randn(8, 1)).square().mean()
            loss.backward()
            step()
            optimizer.zero_grad()
            yield seen(module, optimizer, loss)

    return run


for name, make in OPTIMIZERS.items():
    case(f"torch.{name}_whole_step")(whole_step(make))
    case(f"torch.{name}_alone")(step_alone(make))
