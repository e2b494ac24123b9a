"""Every module of PyTorch's module_db, trained and evaluated through the compiler and beside eager."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db

from .compare import difference, tensors_in
from .inputs import alike, seed_all
from .op_sweep import SAMPLE_SEEDS, shown
from .outcome import Outcome, fresh, moves_known, observe, outcome_difference
from .record import Announce, Limits, Record
from .subject import Subject
from .verdict import (
    FAILED,
    PASSED,
    UNCOMPILED,
    Verdict,
    data_dependent_operator,
    described,
    judge_errors,
    without_place,
)

MODULES: dict[str, ModuleInfo] = {info.name: info for info in module_db}
STEP = 0.1


@dataclass
class Trained:
    """A module and the callable to call it by, which for eager is the module itself."""

    module: nn.Module
    call: Callable


def sweep_module(name: str, subject: Subject, limits: Limits, announce: Announce) -> Record:
    """Judges the samples of one module in float32 and, of those that have it, float64; in
    train and in eval."""
    info, record, begin = MODULES[name], Record(name), time.monotonic()
    dtypes = [d for d in (torch.float32, torch.float64) if d in info.supported_dtypes("cpu")]
    for dtype in dtypes:
        for mode in ("train", "eval"):
            if limits.wants(mode, shown(dtype)):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    sweep_mode(info, dtype, mode, subject, limits, record, announce, begin + limits.seconds)
        subject.reset()
    record.seconds = time.monotonic() - begin
    return record


def sweep_mode(
    info: ModuleInfo,
    dtype: torch.dtype,
    mode: str,
    subject: Subject,
    limits: Limits,
    record: Record,
    announce: Announce,
    deadline: float,
) -> None:
    samples, others = (samples_of(info, dtype, mode, seed) for seed in SAMPLE_SEEDS)
    chosen = limits.chosen(len(samples), 24)
    record.not_chosen += 0 if limits.sample is not None else len(samples) - len(chosen)
    for done, index in enumerate(chosen):
        if time.monotonic() > deadline:
            record.out_of_time += len(chosen) - done
            return
        announce(f"{record.name} {mode} {shown(dtype)} {index}")
        try:
            verdict = judge_module(info, dtype, mode, samples[index], others[index], subject)
        except Exception as error:  # neither the module nor the compiler: the comparison could not be made
            verdict = Verdict(FAILED, f"cannot be judged: {described(error)}")
        record.add(verdict, mode, shown(dtype), index)


def samples_of(info: ModuleInfo, dtype: torch.dtype, mode: str, seed: int) -> list[ModuleInput]:
    seed_all(seed)
    samples = info.module_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=True, training=mode == "train"
    )
    return [s for s in samples if s.forward_input is not None]


def judge_module(
    info: ModuleInfo, dtype: torch.dtype, mode: str, sample: ModuleInput, other: ModuleInput, subject: Subject
) -> Verdict:
    """Steps of training on two sets of data; parameters, and so what a step computes, differ
    from step to step."""
    eager = built(info, sample, dtype, mode)
    copied = copy.deepcopy(eager.module)
    compiled = Trained(copied, subject.compile(copied))
    if text := difference(
        list(eager.module.state_dict()), list(compiled.call.state_dict()), "list of the keys of state_dict"
    ):
        return Verdict(FAILED, text)
    calls = [arguments(sample)]
    if alike(calls[0], arguments(other)):
        calls.append(arguments(other))
    calls.append(calls[0])
    for position, (args, kwargs) in enumerate(calls):
        before = copy.deepcopy(eager.module) if subject.rounds else eager.module
        a, b = (step(trained, args, kwargs) for trained in (eager, compiled))
        if a.error or b.error:
            state = {**dict(eager.module.named_parameters()), **dict(eager.module.named_buffers())}
            return judge_errors(
                a, b, subject, lambda: data_dependent_operator(eager.module, fresh(args, kwargs), state)
            )
        text = step_difference(a, b)
        if text and subject.rounds:
            with moves_known(a, lambda: step_of_copy(before, args, kwargs)):
                text = step_difference(a, b)
        if text:
            return Verdict(FAILED, text if position == 0 else f"in step {position + 1}: {text}")
        update(eager.module), update(compiled.module)
        if subject.rounds:
            compiled.module.load_state_dict(eager.module.state_dict())
    reason = subject.eager_reason(compiled.call, *fresh_pair(calls[0]))
    return Verdict(UNCOMPILED if reason else PASSED, without_place(reason), again=True)


def built(info: ModuleInfo, sample: ModuleInput, dtype: torch.dtype, mode: str) -> Trained:
    seed_all(SAMPLE_SEEDS[0])
    constructor = sample.constructor_input
    module = info.module_cls(*constructor.args, **constructor.kwargs).to(dtype).train(mode == "train")
    return Trained(module, module)


def arguments(sample: ModuleInput) -> tuple[tuple, dict]:
    return tuple(sample.forward_input.args), dict(sample.forward_input.kwargs)


def fresh_pair(call: tuple[tuple, dict]) -> tuple[tuple, dict]:
    given = fresh(*call)
    return given.args, given.kwargs


def step(trained: Trained, args: tuple, kwargs: dict) -> Outcome:
    """A forward, and the backward into the arguments and into the module's own gradients,
    as training does it."""
    given = fresh(args, kwargs)
    trained.module.zero_grad()
    outcome = observe(trained.call, given, lambda outputs: outputs, order=0)
    if outcome.error:
        return outcome
    roots = [t for t in tensors_in(outcome.outputs) if t.requires_grad]
    try:
        generator = torch.Generator().manual_seed(SAMPLE_SEEDS[0])
        tangents = [torch.randn(t.shape, dtype=t.dtype, generator=generator) for t in roots]
        torch.autograd.backward(roots, tangents)
    except Exception as error:  # whatever it raises is the outcome
        outcome.error, outcome.failed_in = error, "backward"
    outcome.gradients = [leaf.grad for leaf in given.leaves]
    parameters = dict(trained.module.named_parameters())
    outcome.state = {
        "buffer": dict(trained.module.named_buffers()),
        "gradient of parameter": {name: p.grad for name, p in parameters.items()},
        "parameter": {name: p.data for name, p in parameters.items()},
    }
    return outcome


def step_of_copy(module: nn.Module, args: tuple, kwargs: dict) -> Outcome:
    other = copy.deepcopy(module)
    return step(Trained(other, other), args, kwargs)


def step_difference(eager: Outcome, compiled: Outcome) -> str | None:
    """How what a step shows differs, with parameters, their gradients and buffers."""
    found = (
        difference(eager.state[what], compiled.state[what], what, strides=what != "gradient of parameter")
        for what in eager.state
    )
    return outcome_difference(eager, compiled) or next((text for text in found if text), None)


def update(module: nn.Module) -> None:
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.grad is not None:
                parameter -= STEP * parameter.grad
