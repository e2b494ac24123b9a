"""torch.compiler.is_compiling() is true while a program is traced or watched, so that libraries take the way
through their code that can be traced."""

from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from . import _numbers

# The flag is the whole process's, so threads that trace at the same time share one turn of it.
_depth, _before, _hooks = 0, False, []


def enter() -> None:
    """Programs run by Tandem see that they are compiled until `leave`."""
    global _depth, _before, _hooks
    _depth += 1
    if _depth == 1:
        _before = torch.compiler._is_compiling_flag
        _hooks = [
            register_optimizer_step_pre_hook(_step_begins),
            register_optimizer_step_post_hook(_step_ends),
        ]
        torch.compiler._is_compiling_flag = True


def leave() -> None:
    """Puts back what was before."""
    global _depth
    _depth -= 1
    if _depth == 0:
        torch.compiler._is_compiling_flag = _before
        _read_numbers_as_before()
        for hook in _hooks:
            hook.remove()
        _hooks.clear()


# An optimiser of torch's computes something else, and rounds in another way, when it is compiled.
def _step_begins(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    torch.compiler._is_compiling_flag = False
    torch.Tensor.item = _numbers.item  # type: ignore[method-assign]


def _step_ends(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    torch.compiler._is_compiling_flag = _depth > 0 or _before
    _read_numbers_as_before()


def _read_numbers_as_before() -> None:
    if "item" in vars(torch.Tensor):
        del torch.Tensor.item
