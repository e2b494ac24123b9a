"""Says in one sentence how two results differ, bit for bit, or that they do not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .moves import within

#: How far elements of eager's move, by the tensor's id and in its dense parts, where that is known: those
#: of a backend that rounds otherwise may then differ, within the table of docs/fuzz.md. Else bit for bit.
known_moves: dict[int, list[Tensor]] = {}


def tensors_in(tree: Any) -> Iterator[Tensor]:
    """Every tensor of nested lists, tuples and dicts, in order."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from tensors_in(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from tensors_in(value)


def difference(
    eager: Any, compiled: Any, where: str, *, values: bool = True, strides: bool = True
) -> str | None:
    """How two nested results differ: types, structure, every tensor; `values` and `strides`
    say whether those count."""
    if type(eager) is not type(compiled):
        return f"{where} is a {type(compiled).__name__}, in eager a {type(eager).__name__}"
    if isinstance(eager, Tensor):
        return metadata_difference(eager, compiled, where, strides) or (
            value_difference(eager, compiled, where) if values else None
        )
    if isinstance(eager, dict):
        if list(eager) != list(compiled):
            return f"{where} has keys {list(compiled)}, in eager {list(eager)}"
        pairs = [(eager[key], compiled[key], f"{where}[{key!r}]") for key in eager]
    elif isinstance(eager, (list, tuple)):
        if len(eager) != len(compiled):
            return f"{where} has {len(compiled)} items, in eager {len(eager)}"
        pairs = [(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(eager, compiled))]
    elif same_number(eager, compiled) or not values:
        return None
    else:
        return f"{where} is {compiled!r}, in eager {eager!r}"
    found = (difference(a, b, name, values=values, strides=strides) for a, b, name in pairs)
    return next((text for text in found if text), None)


def same_number(a: Any, b: Any) -> bool:
    if isinstance(a, complex):
        return same_number(a.real, b.real) and same_number(a.imag, b.imag)
    if isinstance(a, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return bool(a == b)


def metadata_difference(eager: Tensor, compiled: Tensor, where: str, strides: bool) -> str | None:
    """The first of the properties a caller can ask a tensor for that differs."""
    for name in ("dtype", "device", "layout", "shape", "requires_grad"):
        a, b = getattr(eager, name), getattr(compiled, name)
        if a != b:
            return f"{where}.{name} is {shown(b)}, in eager {shown(a)}"
    if eager.layout is not torch.strided or eager.is_nested or not strides:
        return None
    for name in ("is_conj", "is_neg"):
        if getattr(eager, name)() != getattr(compiled, name)():
            return f"{where}.{name}() is {getattr(compiled, name)()}, in eager {getattr(eager, name)()}"
    if seen_strides(eager) != seen_strides(compiled):
        shape = shown(eager.shape)
        return f"{where} of shape {shape} has strides {compiled.stride()}, in eager {eager.stride()}"
    return None


def shown(value: Any) -> str:
    return str(tuple(value)) if isinstance(value, torch.Size) else str(value)


def seen_strides(tensor: Tensor) -> list[int]:
    """The strides that decide where an element lies: none of an empty tensor, and none of a
    dimension of size one."""
    if tensor.numel() == 0:
        return []
    return [stride for size, stride in zip(tensor.shape, tensor.stride()) if size != 1]


def value_difference(eager: Tensor, compiled: Tensor, where: str) -> str | None:
    """How the elements differ in their bits; all NaNs are one."""
    with torch.no_grad():
        pairs = zip(dense_parts(eager.detach()), dense_parts(compiled.detach()), strict=True)
        moves = known_moves.get(id(eager), [])
        for i, (part_of_eager, part_of_compiled) in enumerate(pairs):
            if part_of_eager.shape != part_of_compiled.shape:
                return f"{where} stores {part_of_compiled.numel()} elements, in eager {part_of_eager.numel()}"
            if not same_bits(part_of_eager, part_of_compiled) and not (
                moves and within(part_of_eager, part_of_compiled, moves[i])
            ):
                return f"{where}: {worst_element(part_of_eager, part_of_compiled)}"
    return None


def dense_parts(tensor: Tensor) -> list[Tensor]:
    """The plain tensors in which one of any layout keeps its elements."""
    if tensor.is_nested:
        return [part for child in tensor.unbind() for part in dense_parts(child)]
    if tensor.is_quantized:
        return [tensor.int_repr(), tensor.dequantize()]
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    if tensor.is_mkldnn:
        return [tensor.to_dense()]
    tensor = tensor.resolve_conj().resolve_neg()
    return [torch.view_as_real(tensor) if tensor.is_complex() else tensor]


def same_bits(a: Tensor, b: Tensor) -> bool:
    bytes_of_a, bytes_of_b = (
        t.reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8) for t in (a, b)
    )
    if torch.equal(bytes_of_a, bytes_of_b):
        return True
    if not a.is_floating_point():
        return False
    width = a.element_size()
    same = (bytes_of_a.view(-1, width) == bytes_of_b.view(-1, width)).all(1)
    return bool((same | (a.isnan() & b.isnan()).reshape(-1)).all())


def worst_element(a: Tensor, b: Tensor) -> str:
    a, b = a.reshape(-1), b.reshape(-1)
    if a.dtype is torch.bool or not a.is_floating_point():
        differing = (a != b).nonzero().reshape(-1)
    else:
        a, b = a.double(), b.double()
        differing = (
            ((a != b) | (a.signbit() != b.signbit()))
            .logical_and(~(a.isnan() & b.isnan()))
            .nonzero()
            .reshape(-1)
        )
    first = int(differing[0])
    count = f"{differing.numel()} of {a.numel()}"
    return f"{count} elements differ, the first is {b[first].item()}, in eager {a[first].item()}"


def far_apart(
    eager: list[Tensor | None], compiled: list[Tensor | None], where: str, tolerance: float
) -> str | None:
    """How two lists of gradients differ by more than `tolerance` of the largest element of the
    same gradient in eager."""
    if len(eager) != len(compiled):
        return f"there are {len(compiled)} {where}s, in eager {len(eager)}"
    for position, (a, b) in enumerate(zip(eager, compiled)):
        name = f"{where}[{position}]"
        if (a is None) != (b is None):
            kind, eager_kind = ("none" if gradient is None else "a tensor" for gradient in (b, a))
            return f"{name} is {kind}, in eager {eager_kind}"
        if a is None or b is None:
            continue
        if text := metadata_difference(a.detach(), b.detach(), name, strides=False):
            return text
        if id(a) in known_moves and value_difference(a, b, name) is None:
            continue
        a, b = (t.detach().to_dense() if t.layout is not torch.strided else t.detach() for t in (a, b))
        a, b = (torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in (a, b))
        if a.numel() == 0 or torch.equal(a, b):
            continue
        finite = a.isfinite()
        if not bool((finite == b.isfinite()).all()) or not torch.equal(
            a[~finite].isnan(), b[~finite].isnan()
        ):
            return f"{name} is not finite in the same places as in eager"
        if not bool(finite.any()):
            continue
        error, scale = (a - b)[finite].abs().max().item(), a[finite].abs().max().item()
        if error > tolerance * scale:
            return f"{name} is {error:.1e} away from eager's, whose largest element is {scale:.1e}"
    return None
