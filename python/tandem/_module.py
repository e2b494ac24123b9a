"""What tandem.compile returns for modules."""

import copy
from typing import Any

import torch

from . import _C


class CompiledModule(torch.nn.Module):
    """A compiled module: an instance of the original's class that shares everything with it (parameters,
    buffers, submodules, hooks, train/eval), so that either can be trained, moved, saved or loaded; only
    calling it runs compiled code."""

    _tandem: _C.Callable
    _tandem_options: dict[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._tandem(*args, **kwargs)

    # Dynamo leaves functions with this mark alone: what is compiled already is called as it is.
    __call__._torchdynamo_disable = True  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: dict[int, Any]) -> "CompiledModule":
        return _compile_again(copy.deepcopy(self._tandem.original, memo), self._tandem_options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _compile_again, (self._tandem.original, self._tandem_options)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()


_classes: dict[type, type] = {}


def compile_module(module: torch.nn.Module, options: dict[str, Any], function: _C.Callable) -> CompiledModule:
    """A second face of `module` whose calls go through `function`."""
    original = type(module)
    if original not in _classes:
        members = {
            "__slots__": ("_tandem", "_tandem_options"),
            "__module__": original.__module__,
            "__qualname__": original.__qualname__,
            "__doc__": original.__doc__,
        }
        _classes[original] = type(original)(original.__name__, (CompiledModule, original), members)
    face = object.__new__(_classes[original])
    object.__setattr__(face, "__dict__", module.__dict__)
    object.__setattr__(face, "_tandem", function)
    object.__setattr__(face, "_tandem_options", options)
    return face


def _compile_again(module: torch.nn.Module, options: dict[str, Any]) -> CompiledModule:
    from ._compile import _compile_with

    return _compile_with(options, module)
