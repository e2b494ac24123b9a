"""One call with everything that can be seen of it, and how two of them differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .compare import dense_parts, difference, far_apart, known_moves, tensors_in
from .inputs import Copier, rebuilt, seed_all
from .moves import moves_of

CALL_SEED, TANGENT_SEED = 1234, 4321
SECOND_ORDER_TOLERANCE = 1e-10


@dataclass
class Arguments:
    """Fresh arguments of one call, and the leaves that its gradients are asked of."""

    args: tuple
    kwargs: dict
    leaves: list[Tensor]


def fresh(args: tuple, kwargs: dict, *, first_is_written: bool = False) -> Arguments:
    """Copies of the arguments; what is to be written is a further copy that autograd sees,
    since leaves refuse writes."""
    args, kwargs = Copier()((args, kwargs))
    distinct = {id(t): t for t in tensors_in((args, kwargs))}.values()
    leaves = [t for t in distinct if t.requires_grad]
    if first_is_written:
        args = (copied_for_writing(args[0]), *args[1:])
    return Arguments(args, kwargs, leaves)


def copied_for_writing(tree: Any) -> Any:
    return tree.clone() if isinstance(tree, Tensor) else rebuilt(tree, copied_for_writing)


@dataclass
class Outcome:
    """What came of a forward, a backward, and a backward of that where it was asked for."""

    outputs: Any = None
    arguments: list[Tensor] = field(default_factory=list)
    versions: list[bool] = field(default_factory=list)
    sharing: list[tuple] = field(default_factory=list)
    gradients: list[Tensor | None] = field(default_factory=list)
    second: list[Tensor | None] = field(default_factory=list)
    state: dict[str, dict[str, Tensor | None]] = field(default_factory=dict)  #: of a module
    error: Exception | None = None
    failed_in: str = ""
    next_random: Tensor | None = None


def observe(function: Callable, given: Arguments, process: Callable[[Any], Any], order: int = 1) -> Outcome:
    """Seeds, calls and differentiates `order` times; an error is kept and ends it."""
    outcome = Outcome(failed_in="forward")
    outcome.arguments = list(tensors_in((given.args, given.kwargs)))
    before = [version(t) for t in outcome.arguments]
    try:
        seed_all(CALL_SEED)
        outcome.outputs = function(*given.args, **given.kwargs)
        outcome.sharing = shared_memory(outcome.arguments, outcome.outputs)
        outcome.versions = [version(t) != b for t, b in zip(outcome.arguments, before)]
        outcome.failed_in = "backward"
        if order > 0:
            differentiate(outcome, given.leaves, process, order)
        outcome.failed_in = ""
    except Exception as error:  # whatever it raises is the outcome
        outcome.error = error
    outcome.next_random = torch.rand(1)
    return outcome


def version(tensor: Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def differentiate(outcome: Outcome, leaves: list[Tensor], process: Callable[[Any], Any], order: int) -> None:
    """Fills in the gradients of the leaves, and for order 2 those of the gradients too."""
    roots = [dense(t) for t in tensors_in(process(outcome.outputs)) if t.requires_grad]
    if not roots or not leaves:
        return
    generator = torch.Generator().manual_seed(TANGENT_SEED)
    tangents = [tangent_like(t, generator).requires_grad_(order > 1) for t in roots]
    outcome.gradients = list(
        torch.autograd.grad(roots, leaves, tangents, allow_unused=True, create_graph=order > 1)
    )
    if order < 2:
        return
    outcome.failed_in = "second backward"
    again = [dense(g) for g in outcome.gradients if g is not None and g.requires_grad]
    if again:
        cotangents = [tangent_like(g, generator) for g in again]
        outcome.second = list(torch.autograd.grad(again, [*leaves, *tangents], cotangents, allow_unused=True))


def dense(tensor: Tensor) -> Tensor:
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def tangent_like(tensor: Tensor, generator: torch.Generator) -> Tensor:
    if tensor.is_nested:
        return torch.ones_like(tensor)
    return torch.randn(tensor.shape, dtype=tensor.dtype, generator=generator)


def shared_memory(arguments: list[Tensor], outputs: Any) -> list[tuple]:
    """For each output: which argument it is, and which argument or earlier output it shares
    memory with, and where."""
    known = [(t, memory(t)) for t in arguments]
    result = []
    for output in tensors_in(outputs):
        same = next((i for i, (t, _) in enumerate(known) if t is output), None)
        place = memory(output)
        shared = next((i for i, (_, other) in enumerate(known) if place is not None and other == place), None)
        result.append((same, shared, output.storage_offset() if shared is not None else None))
        known.append((output, place))
    return result


def memory(tensor: Tensor) -> int | None:
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.numel() == 0:
        return None
    return tensor.untyped_storage()._cdata


def seen(outcome: Outcome) -> list[Tensor | None]:
    state = tensors_in(outcome.state)
    return [*tensors_in(outcome.outputs), *outcome.arguments, *outcome.gradients, *outcome.second, *state]


@contextmanager
def moves_known(eager: Outcome, again: Callable[[], Outcome]) -> Iterator[None]:
    """While this lasts, elements of this outcome are judged by how far they move."""

    def parts_of(outcome: Outcome) -> list[list[Tensor]]:
        return [[] if t is None else dense_parts(t.detach()) for t in seen(outcome)]

    moves = moves_of(parts_of(eager), lambda: parts_of(again()))
    known_moves.update({id(t): parts for t, parts in zip(seen(eager), moves)})
    try:
        yield
    finally:
        known_moves.clear()


def outcome_difference(
    eager: Outcome, compiled: Outcome, *, values: bool = True, order: int = 1
) -> str | None:
    """How two outcomes of the same call differ, errors aside; the second order is
    compared within its tolerance."""
    if order > 1:
        return (
            difference(eager.outputs, compiled.outputs, "output", values=values)
            or far_apart(eager.gradients, compiled.gradients, "gradient", SECOND_ORDER_TOLERANCE)
            or far_apart(eager.second, compiled.second, "second gradient", SECOND_ORDER_TOLERANCE)
        )
    return (
        difference(eager.outputs, compiled.outputs, "output", values=values)
        or difference(eager.arguments, compiled.arguments, "argument afterwards")
        or difference(eager.versions, compiled.versions, "a counted write to argument")
        or sharing_difference(eager.sharing, compiled.sharing)
        or difference(eager.gradients, compiled.gradients, "gradient", strides=False)
        or difference(eager.next_random, compiled.next_random, "next random number")
    )


def sharing_difference(eager: list[tuple], compiled: list[tuple]) -> str | None:
    for position, (a, b) in enumerate(zip(eager, compiled)):
        for what, x, y in zip(("is tensor", "shares memory with tensor", "lies at offset"), a, b):
            if x != y:
                return f"output {position} {what} {y}, in eager {x}"
    return None
