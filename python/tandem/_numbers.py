"""Numbers that torch's optimisers read from tensors: numbers of the graph while a step is traced, since the
step count is another at every call."""

from typing import Any, NoReturn

import torch

from . import _C

_LARGEST_EXACT_INTEGER = 2**53


class _Symbol:
    """What torch asks about a number whose value it is not given."""

    def __init__(self, number: torch.Tensor) -> None:
        self.number = number

    def is_int(self) -> bool:
        return False

    def is_bool(self) -> bool:
        return False

    def is_float(self) -> bool:
        return True

    def guard_float(self, file: str, line: int) -> NoReturn:
        torch._C.TensorBase.item(self.number)
        raise AssertionError("a look at data is refused")


class Number(torch.SymFloat):
    """Computed with as Python computes with floats, and passed to operators; whoever asks which number it
    is, looks at data."""

    def __add__(self, other: Any) -> Any:
        return _computed("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _computed("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _computed("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _computed("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return _computed("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _computed("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _computed("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _computed("div", other, self)

    def __pow__(self, other: Any) -> Any:
        return _computed("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _computed("pow", other, self)

    def __neg__(self) -> Any:
        return _computed("mul", self, -1.0)

    def __pos__(self) -> Any:
        return self

    def _look(self, *others: Any) -> NoReturn:
        self.node.guard_float("", 0)

    __bool__ = __float__ = __int__ = __trunc__ = __round__ = __floor__ = __ceil__ = __abs__ = __hash__ = (
        __repr__
    ) = __str__ = __format__ = _look
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _look
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __divmod__ = __rdivmod__ = __reduce_ex__ = (
        is_integer
    ) = as_integer_ratio = hex = conjugate = _look


def _computed(operation: str, left: Any, right: Any) -> Any:
    for operand in (left, right):
        if not (
            isinstance(operand, (Number, float))
            or isinstance(operand, int)
            and abs(operand) <= _LARGEST_EXACT_INTEGER
        ):
            return NotImplemented
    return Number(
        _Symbol(
            _C.compute_number(
                operation, *(o.node.number if isinstance(o, Number) else float(o) for o in (left, right))
            )
        )
    )


def item(tensor: torch.Tensor) -> Any:
    """Stands in the place of `Tensor.item` while an optimiser steps."""
    number = _C.read_number(tensor)
    return torch._C.TensorBase.item(tensor) if number is None else Number(_Symbol(number))
