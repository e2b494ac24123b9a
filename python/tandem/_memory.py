"""What a program keeps for its backward, as its author wants it."""

from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint

from . import _C


def checkpoint(function: Callable[..., Any], *inputs: Any, **keywords: Any) -> Any:
    """What `function` returns for these arguments, of which nothing that it computes is kept for the
    backward: that calls it again, with the random numbers and under the autocast of the first time.

    It is torch.utils.checkpoint.checkpoint in the form that is not reentrant, and takes its keywords, besides
    those of `function`. A compiled function keeps no more than eager does.
    """
    return torch.utils.checkpoint.checkpoint(function, *inputs, use_reentrant=False, **keywords)


def must_save(x: torch.Tensor) -> torch.Tensor:
    """`x` itself. In a compiled function the memory of `x` is never computed again: where a backward needs
    it, it is kept, inside of a checkpoint too."""
    _C.mark_must_save(x)
    return x


def prefer_recompute(x: torch.Tensor) -> torch.Tensor:
    """`x` itself. In a compiled function computing the memory of `x` again counts as nothing: it is done
    where fewer bytes are kept for it."""
    _C.mark_prefer_recompute(x)
    return x
