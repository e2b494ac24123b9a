"""torch.utils.checkpoint in its reentrant form, whose backward Tandem takes apart."""

import contextlib
from typing import Any

import torch
from torch.utils.checkpoint import CheckpointFunction, detach_variable

Tensors = list[torch.Tensor]


def is_checkpoint(context: Any) -> bool:
    """Whether an autograd function's context is that of such a checkpoint."""
    return getattr(context, "_forward_cls", None) is CheckpointFunction


def has_device(context: Any) -> bool:
    """Whether the random numbers of a device are drawn again."""
    return context.preserve_rng_state and context.had_device_in_fwd


def call_again(context: Any, saved: Tensors, gradients: Tensors) -> tuple[Tensors, Tensors, Tensors]:
    """CheckpointFunction.backward, up to where that calls backward(): the outputs with a gradient, these
    gradients, and the tensors that the function was called with."""
    inputs = list(context.inputs)
    for index, tensor in zip(context.tensor_indices, saved, strict=True):
        inputs[index] = tensor
    keeps = context.preserve_rng_state
    with torch.random.fork_rng(devices=[], enabled=keeps, device_type=context.device_type):
        if keeps:
            torch.set_rng_state(context.fwd_cpu_state)
        detached = detach_variable(tuple(inputs))
        on_device = contextlib.nullcontext()
        if torch.amp.is_autocast_available(context.device_type):
            on_device = torch.amp.autocast(context.device_type, **context.device_autocast_kwargs)
        with torch.enable_grad(), on_device, torch.amp.autocast("cpu", **context.cpu_autocast_kwargs):
            outputs = context.run_function(*detached)
    if isinstance(outputs, torch.Tensor):
        outputs = (outputs,)
    with_gradient = [i for i, y in enumerate(outputs) if isinstance(y, torch.Tensor) and y.requires_grad]
    if not with_gradient:
        raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
    return (
        [outputs[i] for i in with_gradient],
        [gradients[i] for i in with_gradient],
        [detached[i] for i in context.tensor_indices],
    )
