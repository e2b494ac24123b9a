"""Fresh copies of a sample's arguments, and whether two samples are alike in all but their values."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch import Tensor


class Copier:
    """Copies nested arguments so that tensors that share memory, or are one, still do; each
    copy is a leaf."""

    def __init__(self) -> None:
        self.tensors: dict[int, Tensor] = {}
        self.storages: dict[int, torch.UntypedStorage] = {}

    def __call__(self, tree: Any) -> Any:
        if isinstance(tree, Tensor):
            if id(tree) not in self.tensors:
                self.tensors[id(tree)] = self.copied(tree)
            return self.tensors[id(tree)]
        if isinstance(tree, torch.Generator):
            return tree.clone_state()
        return rebuilt(tree, self)

    def copied(self, tensor: Tensor) -> Tensor:
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(self.copied(tensor.data), tensor.requires_grad)
        if (
            type(tensor) is not Tensor
            or tensor.layout is not torch.strided
            or tensor.is_nested
            or tensor.is_quantized
        ):
            return tensor.detach().clone().requires_grad_(tensor.requires_grad)
        storage = tensor.untyped_storage()
        if storage._cdata not in self.storages:
            self.storages[storage._cdata] = storage.clone()
        copy = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(
            self.storages[storage._cdata], tensor.storage_offset(), tensor.shape, tensor.stride()
        )
        copy = copy.conj() if tensor.is_conj() else copy
        copy = copy._neg_view() if tensor.is_neg() else copy
        return copy.requires_grad_(tensor.requires_grad)


def rebuilt(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The same list, tuple, named tuple or dict with every item changed; anything else as it is."""
    if isinstance(tree, dict):
        return type(tree)((key, change(value)) for key, value in tree.items())
    if isinstance(tree, list):
        return [change(item) for item in tree]
    if isinstance(tree, tuple) and type(tree) is not torch.Size:
        items = [change(item) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    return tree


def alike(a: Any, b: Any) -> bool:
    """Whether a function compiled for the one serves the other: equal but for the values in tensors."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        if (a.dtype, a.layout, a.shape, a.requires_grad) != (b.dtype, b.layout, b.shape, b.requires_grad):
            return False
        if a.layout is not torch.strided or a.is_nested:
            return True
        return (a.stride(), a.is_conj(), a.is_neg()) == (b.stride(), b.is_conj(), b.is_neg())
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, torch.Generator):
        return True
    return bool(a == b)


def seed_all(seed: int) -> None:
    """Seeds every generator that samples and operators draw from."""
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)
