"""The ways into Tandem, and what went through them."""

from __future__ import annotations

import time
from typing import Any

import torch

DOORS = ("compile", "dynamo")


class Calls:
    """Counts the calls of everything compiled while this is entered."""

    count = 0

    def __enter__(self) -> Calls:
        from tandem import _C

        self.original = original = _C.Callable.__call__

        def counted(function: Any, *args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return original(function, *args, **kwargs)

        _C.Callable.__call__ = counted
        return self

    def __exit__(self, *error: Any) -> None:
        from tandem import _C

        _C.Callable.__call__ = self.original


class Door:
    """Makes compiled forms; remembers when the first was made."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.made_at = 0.0

    def __call__(self, target: Any) -> Any:
        self.made_at = time.monotonic()
        if self.name == "compile":
            import tandem

            return tandem.compile(target)
        if self.name == "eager":
            return target
        # The same without Tandem tells what is Dynamo's own.
        backend = {"dynamo": "tandem", "dynamo-alone": "eager"}[self.name]
        return torch.compile(target, backend=backend)

    def inside(self, module: torch.nn.Module) -> torch.nn.Module:
        """A module whose own methods call it compiled, as generate() does."""
        if not self.name.startswith("dynamo"):
            return self(module)
        module.forward = self(module.forward)
        return module
