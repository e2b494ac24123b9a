"""What users call the arguments of their functions, and what those functions can see besides them."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch


def parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """The names of the first `count` positional parameters; numbers where there are no names."""
    try:
        target = function.forward if isinstance(function, torch.nn.Module) else function
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = []
    for position in range(count):
        parameter = parameters[position] if position < len(parameters) else None
        named = parameter is not None and parameter.kind in (
            parameter.POSITIONAL_ONLY,
            parameter.POSITIONAL_OR_KEYWORD,
        )
        names.append(parameter.name if named else str(position))
    return names


def roots_of(function: Callable[..., Any], watch: list[torch.nn.Module]) -> list[Any]:
    """The modules and functions whose state a call of `function` may read."""
    roots: list[Any] = list(watch)
    waiting = [function]
    while waiting:
        part = waiting.pop()
        if isinstance(part, functools.partial):
            waiting += [part.func, *part.args, *part.keywords.values()]
        elif isinstance(part, torch.nn.Module) or inspect.ismethod(part):
            roots.append(part)
        elif inspect.isfunction(part):
            roots.append(part)
            if hasattr(part, "__wrapped__"):
                waiting.append(part.__wrapped__)
    return roots
