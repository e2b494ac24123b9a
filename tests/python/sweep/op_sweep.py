"""Every operator of PyTorch's op_db that runs on CPU, through the compiler and beside eager."""

from __future__ import annotations

import copy
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from .compare import tensors_in
from .inputs import alike, seed_all
from .outcome import fresh, memory
from .record import Announce, Limits, Record
from .subject import Subject
from .verdict import FAILED, Question, Verdict, described, judge

SAMPLE_SEEDS = (11, 12)
#: Their elements are whatever the memory held, so only their metadata is compared.
UNINITIALISED = re.compile(r"(new_)?empty(_like|_permuted|_strided)?$")


@dataclass(frozen=True)
class Stage:
    """One way to call an op, on one dtype, with the most samples that the short form tries."""

    name: str
    dtype: torch.dtype
    limit: int

    @property
    def order(self) -> int:
        return 2 if self.name == "second" else 1


def full_name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def seeds(variant: Callable | None) -> bool:
    return "wrapper_set_seed" in getattr(getattr(variant, "__code__", None), "co_names", ())


def without_seeding(variant: Callable | None) -> Callable | None:
    """The same, drawing as users' programs do."""
    if not seeds(variant):
        return variant

    def drawn(*args: Any, **kwargs: Any) -> Any:
        wrapper = common_methods_invocations.wrapper_set_seed
        common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
        try:
            return variant(*args, **kwargs)
        finally:
            common_methods_invocations.wrapper_set_seed = wrapper

    return drawn


def unseeded(op: OpInfo) -> OpInfo:
    """The database wraps random ops so that each call seeds, and puts the generator back; such ops run as
    they are. This one has no wrapper, and is compiled."""
    bare = copy.copy(op)
    bare.op, bare.inplace_variant, bare.method_variant = map(
        without_seeding, (op.op, op.inplace_variant, op.method_variant)
    )
    return bare


OPS: dict[str, OpInfo] = {full_name(op): op for op in op_db}
OPS |= {
    f"{name}.unseeded": unseeded(op)
    for name, op in OPS.items()
    if any(map(seeds, (op.op, op.inplace_variant, op.method_variant)))
}


def stages_of(op: OpInfo, limits: Limits) -> list[Stage]:
    """The function itself first, in its main dtype; then its variants, the other dtypes
    and the second order."""
    dtypes = op.supported_dtypes("cpu")
    if not dtypes:
        return []
    main = next(
        (d for d in (torch.float32, torch.complex64, torch.int64) if d in dtypes), min(dtypes, key=str)
    )
    stages = [Stage("function", main, 40)]
    if op.inplace_variant:
        stages.append(Stage("inplace", main, 20))
    stages.append(Stage("view", main, 20))
    if op.method_variant:
        stages.append(Stage("method", main, 6))
    if op.supports_gradgrad and torch.float64 in op.supported_backward_dtypes("cpu"):
        stages.append(Stage("second", torch.float64, 10))
    stages += [
        Stage("function", d, 8) for d in (torch.complex64, torch.float64) if d in dtypes and d is not main
    ]
    return [s for s in stages if limits.wants(s.name, shown(s.dtype))]


def shown(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def sweep_op(name: str, subject: Subject, limits: Limits, announce: Announce) -> Record:
    """Judges the chosen samples of one op in all its stages; what there is no time for is counted."""
    op, record, begin = OPS[name], Record(name), time.monotonic()
    stages = stages_of(op, limits)
    if not stages:
        record.note = "no dtype on CPU"
    for stage in stages:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sweep_stage(op, stage, subject, limits, record, announce, begin + limits.seconds)
        subject.reset()
    if stages and not record.stages and not record.note:
        record.note = "no samples on CPU"
    record.seconds = time.monotonic() - begin
    return record


def sweep_stage(
    op: OpInfo,
    stage: Stage,
    subject: Subject,
    limits: Limits,
    record: Record,
    announce: Announce,
    deadline: float,
) -> None:
    try:
        samples, others = (samples_of(op, stage.dtype, seed) for seed in SAMPLE_SEEDS)
    except Exception as error:  # the database itself cannot make samples here: nothing to judge
        record.note = f"op_db makes no {shown(stage.dtype)} samples: {described(error)}"
        return
    function = variant(op, stage.name)
    compiled = subject.compile(function)
    chosen = limits.chosen(len(samples), stage.limit)
    left_out = 0 if limits.sample is not None else len(samples) - len(chosen)
    if stage.name == "view":
        chosen = [i for i in chosen if makes_view(op, samples[i])]
    record.not_chosen += left_out if chosen else 0
    for done, index in enumerate(chosen):
        if time.monotonic() > deadline:
            record.out_of_time += len(chosen) - done
            return
        announce(f"{record.name} {stage.name} {shown(stage.dtype)} {index}")
        question = asked(op, stage, function, samples[index], others[index] if index < len(others) else None)
        verdict = judged(question, subject, compiled)
        record.add(verdict, stage.name, shown(stage.dtype), index, samples[index].kwargs)


def judged(question: Question, subject: Subject, compiled: Callable) -> Verdict:
    try:
        return judge(question, subject, compiled)
    except Exception as error:  # neither the op nor the compiler: the comparison could not be made
        return Verdict(FAILED, f"cannot be judged: {described(error)}")


def samples_of(op: OpInfo, dtype: torch.dtype, seed: int) -> list[SampleInput]:
    seed_all(seed)
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    return list(op.sample_inputs("cpu", dtype, requires_grad=differentiable, set_seed=False))


def asked(
    op: OpInfo, stage: Stage, function: Callable, sample: SampleInput, other: SampleInput | None
) -> Question:
    calls = [((sample.input, *sample.args), dict(sample.kwargs))]
    if other is not None:
        further = ((other.input, *other.args), dict(other.kwargs))
        if stage.order == 1 and alike(calls[0], further):
            calls.append(further)
    return Question(
        function,
        calls,
        sample.output_process_fn_grad,
        first_is_written=stage.name in ("inplace", "view"),
        values=not UNINITIALISED.match(op.name),
        order=stage.order,
    )


def variant(op: OpInfo, stage: str) -> Callable:
    """What a stage calls."""
    if stage == "inplace":
        return op.inplace_variant
    if stage == "method":
        return op.method_variant
    return write_through(op.op) if stage == "view" else op.op


def write_through(view: Callable) -> Callable:
    """Writes to what a view operator returns, which its argument must show."""

    def written(*args: Any, **kwargs: Any) -> Any:
        outputs = view(*args, **kwargs)
        for output in tensors_in(outputs):
            output.mul_(2)
        return outputs

    return written


def makes_view(op: OpInfo, sample: SampleInput) -> bool:
    """Whether outputs of the op are views of its first argument, each element in a place of its own."""
    try:
        given = fresh((sample.input, *sample.args), sample.kwargs, first_is_written=True)
        outputs = op.op(*given.args, **given.kwargs)
    except Exception:  # judged in the stage that calls the op as it is
        return False
    firsts = {memory(t) for t in tensors_in(given.args[0])} - {None}
    views = [t for t in tensors_in(outputs) if memory(t) in firsts and t._is_view()]
    return bool(views) and all(map(has_own_places, views))


def has_own_places(view: torch.Tensor) -> bool:
    """Whether no two elements share a place in memory, where the order of writes would decide the result."""
    numbers = torch.arange(view.untyped_storage().nbytes() // view.element_size())
    return (
        numbers.as_strided(view.shape, view.stride(), view.storage_offset()).unique().numel() == view.numel()
    )
