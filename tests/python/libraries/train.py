"""What most cases do: some steps of training, each of which can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from .doors import Door
from .registry import Observation

STEPS = 8  # calls 2, 3 and 5 are watched; 4 and 6 to 8 run compiled code alone


def train(
    door: Door,
    module: torch.nn.Module,
    batch: Callable[[], tuple[Any, ...] | dict[str, Any]],
    loss: Callable[..., torch.Tensor] = lambda output: output.loss,
    function: Callable[..., Any] | None = None,
    steps: int = STEPS,
) -> Iterator[Observation]:
    """Trains `module` by AdamW on a new batch at each step; `function` is compiled, or the module itself."""
    call = door(module if function is None else function)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    for step in range(steps):
        torch.manual_seed(step)
        given = batch()
        output = call(**given) if isinstance(given, dict) else call(*given)
        value = loss(output)
        value.backward()
        seen = {"loss": value.detach().clone()}
        seen |= {
            f"gradient of {name}": p.grad.clone()
            for name, p in module.named_parameters()
            if p.grad is not None
        }
        optimizer.step()
        optimizer.zero_grad()
        seen |= {name: t.detach().clone() for name, t in module.state_dict().items() if torch.is_tensor(t)}
        yield seen
