"""Judges one sample: compiled and eager side by side, then the compiled object again on other data."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)

from .inputs import rebuilt
from .outcome import Arguments, Outcome, fresh, moves_known, observe, outcome_difference
from .subject import Subject

PASSED, REFUSED, UNCOMPILED, FAILED = "passed", "refused", "uncompiled", "failed"


@dataclass
class Verdict:
    """What became of a sample, why, and whether it was called again on other data."""

    status: str
    reason: str = ""
    again: bool = False


@dataclass
class Question:
    """A function and the arguments of one sample, then further sets of arguments of the same geometry."""

    function: Callable
    calls: list[tuple[tuple, dict]]
    process: Callable[[Any], Any]
    first_is_written: bool = False
    values: bool = True
    order: int = 1

    def arguments(self, which: int) -> Arguments:
        args, kwargs = self.calls[which]
        return fresh(args, kwargs, first_is_written=self.first_is_written)

    def observed(self, function: Callable, which: int) -> Outcome:
        return observe(function, self.arguments(which), self.process, self.order)


def judge(question: Question, subject: Subject, compiled: Callable) -> Verdict:
    """The verdict on the first call and then on those with other data; `compiled` may have
    served other samples before."""
    verdict = judge_call(question, 0, subject, compiled)
    if verdict.status == FAILED:
        return explained_failure(verdict, question, subject)
    if verdict.status == REFUSED:
        return verdict
    for which in range(1, len(question.calls)):
        traces = subject.traces()
        later = judge_call(question, which, subject, compiled)
        if later.status == FAILED:
            return Verdict(FAILED, f"on other data: {later.reason}")
        if subject.traces() != traces and later.status == PASSED:
            return Verdict(FAILED, "other data of the same geometry was traced again")
        verdict.again = True
    return verdict


def judge_call(question: Question, which: int, subject: Subject, compiled: Callable) -> Verdict:
    eager = question.observed(question.function, which)
    given = question.arguments(which)
    # Asked first: a function with as many signatures as there are samples would not compile them of
    # its own accord.
    reason = eager_reason(subject, compiled, given)
    broken = subject.broken()
    outcome = question.observed(compiled, which)
    if subject.broken() != broken:
        return Verdict(FAILED, "a promise seems to be broken: " + eager_reason(subject, compiled, given))
    if outcome.error or eager.error:
        operator = partial(data_dependent_operator, question.function, question.arguments(which))
        return judge_errors(eager, outcome, subject, operator)
    judged = partial(outcome_difference, eager, outcome, values=question.values, order=question.order)
    if text := judged():
        if subject.rounds:
            with moves_known(eager, lambda: question.observed(question.function, which)):
                text = judged()
        if text:
            return Verdict(FAILED, text)
    return Verdict(UNCOMPILED, without_place(reason)) if reason else Verdict(PASSED)


def eager_reason(subject: Subject, compiled: Callable, given: Arguments) -> str:
    try:
        return subject.eager_reason(compiled, given.args, given.kwargs)
    except Exception:  # which the call will raise too
        return ""


def judge_errors(
    eager: Outcome, compiled: Outcome, subject: Subject, operator: Callable[[], str | None]
) -> Verdict:
    """An error is right where eager has one of its kind, or where the result depends on data and the
    error names an operator."""
    if eager.error is None:
        if isinstance(compiled.error, subject.unsupported) and (needed := operator()):
            if named := re.search(r"\w+::\w+", str(compiled.error)):
                return Verdict(REFUSED, f"depends on data: {named[0]}")
            return Verdict(FAILED, f"the error does not name {needed}: {described(compiled.error)}")
        return Verdict(FAILED, f"{compiled.failed_in} raises {described(compiled.error)}")
    if compiled.error is None:
        return Verdict(
            FAILED, f"accepts what eager refuses in the {eager.failed_in}: {described(eager.error)}"
        )
    if compiled.failed_in != eager.failed_in:
        there = f"in eager the {eager.failed_in}: {described(eager.error)}"
        return Verdict(FAILED, f"{compiled.failed_in} raises {described(compiled.error)}, {there}")
    if type(compiled.error) is type(eager.error) or isinstance(compiled.error, subject.errors):
        return Verdict(REFUSED, "eager refuses it")
    return Verdict(FAILED, f"raises {described(compiled.error)}, in eager {described(eager.error)}")


def data_dependent_operator(
    function: Callable, given: Arguments, state: dict[str, Tensor] | None = None
) -> str | None:
    """The operator whose result, by PyTorch's own shape propagation, cannot be known without data;
    `state` is a module's."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)

    def faked(tree: Any) -> Any:
        return mode.from_tensor(tree) if isinstance(tree, Tensor) else rebuilt(tree, faked)

    args, kwargs = faked(given.args), faked(given.kwargs)
    try:
        with mode:
            if state is None:
                function(*args, **kwargs)
            else:
                torch.func.functional_call(function, faked(state), args, kwargs)
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        return str(error.func).split(".")[1]
    except Exception:  # a refusal for any other reason says nothing about data
        return None
    return None


def explained_failure(verdict: Verdict, question: Question, subject: Subject) -> Verdict:
    """The failure, with what else is known of it: whether eager repeats itself, and whether the sample
    passes on its own."""
    eager, again = (question.observed(question.function, 0) for _ in range(2))
    if not eager.error and (
        text := outcome_difference(eager, again, values=question.values, order=question.order)
    ):
        return Verdict(FAILED, f"eager does not repeat itself: {text}")
    alone = judge_call(question, 0, subject, subject.compile(question.function))
    return (
        verdict if alone.status == FAILED else Verdict(FAILED, f"only after other samples: {verdict.reason}")
    )


def described(error: Exception | None) -> str:
    return f"{type(error).__name__}: {one_line(str(error))}"


def without_place(reason: str) -> str:
    """The reason in one line, less where in the program it arose, so that equal reasons count as one."""
    return one_line(re.sub(r" \(called at [^()]*\)", "", reason))


def one_line(text: str, limit: int = 220) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"
