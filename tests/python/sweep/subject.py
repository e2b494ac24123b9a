"""What is judged: Tandem, or a stand-in that is wrong in a known way and so shows that the sweep notices."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from .compare import tensors_in
from .inputs import rebuilt


class Subject(Protocol):
    """A compiler under test."""

    errors: tuple[type[Exception], ...]
    unsupported: tuple[type[Exception], ...]
    rounds: bool  #: may round otherwise than eager

    def compile(self, function: Callable) -> Callable: ...

    def eager_reason(self, compiled: Callable, args: tuple, kwargs: dict) -> str: ...

    def traces(self) -> int: ...

    def broken(self) -> int: ...

    def reset(self) -> None: ...


class Tandem:
    """The product, with the backend that promises eager's bits."""

    def __init__(self, backend: str = "eager") -> None:
        import tandem

        self.door = tandem
        self.backend = backend
        self.rounds = backend in ("fuse", "loops")
        self.errors = (tandem.Error,)
        self.unsupported = (tandem.UnsupportedError,)

    def compile(self, function: Callable) -> Callable:
        # Watched calls run the original; with TANDEM_WATCHED_CALLS=all the watching is judged instead
        # of compiled code.
        return self.door.compile(
            function, backend=self.backend, watched_calls=os.environ.get("TANDEM_WATCHED_CALLS") == "all"
        )

    def eager_reason(self, compiled: Callable, args: tuple, kwargs: dict) -> str:
        return self.door.explain(compiled, *args, **kwargs).eager_reason

    def traces(self) -> int:
        return self.door.counters().get("trace", 0)

    def broken(self) -> int:
        return self.door.counters()["promise_broken"]

    def reset(self) -> None:
        self.door.reset()


class StandIn:
    """Calls the function itself and then spoils the result as its name says."""

    errors: tuple[type[Exception], ...] = ()
    unsupported: tuple[type[Exception], ...] = ()
    rounds = False

    def __init__(self, spoil: Callable[[Callable], Callable]) -> None:
        self.spoil = spoil

    def compile(self, function: Callable) -> Callable:
        if not isinstance(function, torch.nn.Module):
            return self.spoil(function)
        function.forward = self.spoil(function.forward)
        return function

    def eager_reason(self, compiled: Callable, args: tuple, kwargs: dict) -> str:
        return ""

    def traces(self) -> int:
        return 0

    def broken(self) -> int:
        return 0

    def reset(self) -> None:
        pass


def on_outputs(change: Callable[[Tensor], Tensor]) -> Callable[[Callable], Callable]:
    """A spoiler that changes every tensor a function returns."""

    def changed(tree: Any) -> Any:
        return change(tree) if isinstance(tree, Tensor) else rebuilt(tree, changed)

    return lambda function: lambda *args, **kwargs: changed(function(*args, **kwargs))


def one_bit(tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return tensor
    return tensor + (torch.nextafter(tensor, tensor.new_tensor(float("inf"))) - tensor).detach()


def remembered(function: Callable) -> Callable:
    """Gives a later call with arguments of the same shapes the values of the first."""
    known: dict[Any, list[Tensor]] = {}

    def call(*args: Any, **kwargs: Any) -> Any:
        outputs = function(*args, **kwargs)
        shapes, others = (
            [t.shape for t in tensors_in((args, kwargs))],
            [a for a in args if not isinstance(a, Tensor)],
        )
        key = (str(shapes), str(others), str(kwargs.keys()))
        first = known.setdefault(key, [t.detach().clone() for t in tensors_in(outputs)])
        with torch.no_grad():
            for output, old in zip(tensors_in(outputs), first):
                if output.shape == old.shape and output.is_floating_point():
                    output.data.copy_(old)
        return outputs

    return call


def writing(function: Callable) -> Callable:
    """Writes to a floating-point argument that the function only reads."""

    def call(*args: Any, **kwargs: Any) -> Any:
        outputs = function(*args, **kwargs)
        for t in tensors_in((args, kwargs)):
            if t.is_floating_point():
                t.data.add_(1)
        return outputs

    return call


def patient(function: Callable) -> Callable:
    """Answers where the function raises."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:
            return None

    return call


def second_scaled(tensor: Tensor) -> Tensor:
    """Right to the first order; its second order is a millionth off."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return Bent.apply(g)

    class Bent(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, g: Tensor) -> Tensor:
            return g.clone()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * (1 + 1e-6)

    return Scaled.apply(tensor) if tensor.requires_grad else tensor


STAND_INS: dict[str, Callable[[Callable], Callable]] = {
    "original": lambda function: function,
    "one_bit": on_outputs(one_bit),
    "detached": on_outputs(torch.Tensor.detach),
    "cloned": on_outputs(torch.clone),
    "restrided": on_outputs(lambda t: t if t.dim() < 2 else t.transpose(0, 1).contiguous().transpose(0, 1)),
    "random": lambda function: lambda *args, **kwargs: (function(*args, **kwargs), torch.rand(1))[0],
    "listed": lambda function: lambda *args, **kwargs: [function(*args, **kwargs)],
    "remembered": remembered,
    "writing": writing,
    "patient": patient,
    "second_scaled": on_outputs(second_scaled),
}


def subject_named(name: str, backend: str) -> Subject:
    """Tandem with this backend, or the stand-in of this name."""
    return Tandem(backend) if name == "tandem" else StandIn(STAND_INS[name])
