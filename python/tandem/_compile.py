"""tandem.compile and what it returns for functions."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

import torch

from . import _C
from ._module import CompiledModule, compile_module
from ._signature import roots_of

_PLAIN = (
    "backend",
    "cudagraphs",
    "partitioner",
    "memory_budget",
    "memory_budget_bytes",
    "random",
    "keep_input_mutations",
    "watched_calls",
    "must_compile",
    "debug_asserts",
    "record_locations",
    "name",
    "max_signatures",
    "static_arguments",
)
_FUNCTIONS = ("fw_compiler", "bw_compiler", "inference_compiler", "partition_fn", "cost_model")


class CompiledFunction:
    """A compiled Python function: called and differentiated like the original, which is `__wrapped__`."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._options = options
        self._callable = _C.Callable(
            function, roots_of(function, list(options.get("watch", ()))), make_options(options, function)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._callable(*args, **kwargs)

    # Dynamo leaves functions with this mark alone: what is compiled already is called as it is.
    __call__._torchdynamo_disable = True  # type: ignore[attr-defined]

    def explain(self, *args: Any, **kwargs: Any) -> _C.Explanation:
        """Traces and compiles for these arguments without running, and says what came of it."""
        return self._callable.explain(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __deepcopy__(self, memo: dict[int, Any]) -> "CompiledFunction":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledFunction, (self.__wrapped__, self._options)

    def __repr__(self) -> str:
        return f"<tandem.compile of {self.__wrapped__!r}>"


def make_options(options: dict[str, Any], target: Any) -> _C.Options:
    """The engine's options from the keywords of `compile`; raises TypeError for one that does not exist."""
    made = _C.Options()
    made.name = getattr(target, "__qualname__", type(target).__qualname__)
    for key, value in options.items():
        if key in _PLAIN:
            setattr(made, key, value)
        elif key in _FUNCTIONS:
            if value is not None:
                getattr(made, "set_" + key)(value)
        elif key == "decompositions":
            _set_decompositions(made, value)
        elif key == "cache":
            made.cache = _C.CacheOptions(enabled=value) if isinstance(value, bool) else value
        elif key != "watch":
            known = ", ".join((*_PLAIN, *_FUNCTIONS, "decompositions", "watch", "cache"))
            raise TypeError(f"tandem.compile has no option {key!r}; it has {known}")
    return made


def _set_decompositions(made: _C.Options, value: Any) -> None:
    if value is None:
        return
    if value == "default":
        made.decompose_by_default()
    elif not value:
        made.decompose_nothing()
    else:
        raise TypeError(
            'decompositions is None (what the backend asks for), "default" (the named default table) '
            "or empty (nothing is decomposed)"
        )


@overload
def compile(fn_or_module: None = None, **options: Any) -> Callable[[Callable[..., Any]], Any]: ...
@overload
def compile(fn_or_module: torch.nn.Module, **options: Any) -> CompiledModule: ...
@overload
def compile(fn_or_module: Callable[..., Any], **options: Any) -> CompiledFunction: ...


def compile(
    fn_or_module: Callable[..., Any] | None = None,
    *,
    backend: str = "eager",
    cudagraphs: bool = False,
    partitioner: str = "min_cut",
    memory_budget: float = 1.0,
    memory_budget_bytes: int | None = None,
    random: str = "",
    keep_input_mutations: bool = True,
    watched_calls: bool = True,
    must_compile: bool = False,
    debug_asserts: bool = False,
    record_locations: bool = False,
    name: str | None = None,
    watch: Sequence[torch.nn.Module] = (),
    max_signatures: int = 64,
    static_arguments: Sequence[int] = (),
    fw_compiler: Callable[[_C.Graph, _C.CompileContext], Callable[[list[torch.Tensor]], list[torch.Tensor]]]
    | None = None,
    bw_compiler: Callable[[_C.Graph, _C.CompileContext], Callable[[list[torch.Tensor]], list[torch.Tensor]]]
    | None = None,
    inference_compiler: Callable[
        [_C.Graph, _C.CompileContext], Callable[[list[torch.Tensor]], list[torch.Tensor]]
    ]
    | None = None,
    partition_fn: Callable[[_C.Joint, _C.PartitionContext], _C.Partition] | None = None,
    cost_model: Callable[[_C.Graph, _C.Node], float] | None = None,
    decompositions: Any = None,
    cache: bool | _C.CacheOptions = True,
) -> Any:
    """Compiles a function or module at its first call with arguments of each kind; without one
    it is a decorator.

    Tensors may sit in nested lists, tuples, dicts and dataclasses; everything that is no tensor is part of
    the signature: another value is another trace. So is what the function reads besides them: modules,
    globals, closures, attributes, what containers hold; a change is seen by the next call.

    A program that looks at its data, or keeps state that compiled code would not keep, runs as it is and says
    so once; `must_compile` makes that an UnsupportedError. Calls 2, 3, 5, 9, 17 ... of a signature run the
    original and compare its operators with what was compiled, unless `watched_calls` is false.

    Random numbers are eager's where `random` is "libtorch"; where it is "counter" they are functions of a
    seed that is drawn once a call, and can be computed again. Empty is what the backend prefers.
    `partition_fn` splits the joint graph in place of `partitioner`, and `cost_model` says how many seconds a
    node takes; a function with attributes `name` and `version` is part of the cache's key, without them
    nothing is cached. With an attribute `takes_narrow_forms` that is true, `partition_fn` is given joint
    graphs with narrow forms, as `min_cut` is.
    `static_arguments` are positions among the tensors of a call that stay where they are; backends are told.
    """
    options: dict[str, Any] = {
        "backend": backend,
        "cudagraphs": cudagraphs,
        "partitioner": partitioner,
        "memory_budget": memory_budget,
        "memory_budget_bytes": memory_budget_bytes,
        "random": random,
        "keep_input_mutations": keep_input_mutations,
        "watched_calls": watched_calls,
        "must_compile": must_compile,
        "debug_asserts": debug_asserts,
        "record_locations": record_locations,
        "watch": list(watch),
        "max_signatures": max_signatures,
        "static_arguments": list(static_arguments),
        "fw_compiler": fw_compiler,
        "bw_compiler": bw_compiler,
        "inference_compiler": inference_compiler,
        "partition_fn": partition_fn,
        "cost_model": cost_model,
        "decompositions": decompositions,
        "cache": cache,
    }
    if name is not None:
        options["name"] = name
    if fn_or_module is None:
        return functools.partial(_compile_with, options)
    return _compile_with(options, fn_or_module)


def _compile_with(options: dict[str, Any], target: Any) -> Any:
    if isinstance(target, torch.nn.Module) and not isinstance(target, torch.jit.ScriptModule):
        return compile_module(
            target,
            options,
            _C.Callable(target, roots_of(target, options["watch"]), make_options(options, target)),
        )
    if not callable(target):
        raise TypeError(f"tandem.compile takes a function or a module, not {type(target).__name__}")
    return CompiledFunction(target, options)


def explain(compiled: Any, *args: Any, **kwargs: Any) -> _C.Explanation:
    """Traces and compiles for these arguments without running, and says what came of it; takes what `compile`
    returned, or what it takes."""
    if isinstance(compiled, CompiledFunction):
        return compiled.explain(*args, **kwargs)
    if isinstance(compiled, CompiledModule):
        return compiled._tandem.explain(*args, **kwargs)
    return explain(compile(compiled), *args, **kwargs)
