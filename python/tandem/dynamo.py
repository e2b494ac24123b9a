"""torch.compile(model, backend="tandem"): Dynamo's graphs go through the same door as everything else."""

from collections.abc import Callable
from typing import Any

import torch

from . import _C
from ._compile import make_options


def backend(module: torch.fx.GraphModule, example_inputs: list[Any], *, options: dict[str, Any] | None = None, mode: str | None = None) -> Callable[..., Any]:
    """The compiled form of one graph of Dynamo's; `options` are the keywords of tandem.compile."""
    if mode not in (None, "default"):
        raise TypeError(f"torch.compile(backend='tandem') has no mode {mode!r}; use options={{...}} with the keywords of tandem.compile")
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            _ = part.code  # written at its first use, which during a trace would count as a change of the module
    function = _C.Callable(module, [module], make_options(options or {}, module))
    return torch._dynamo.disable(function)


backend.reset = _C.reset  # type: ignore[attr-defined]
