"""Tandem compiles training ahead of time: a function or module goes in, something called and trained
like it comes out.

f = tandem.compile(model)             # or a function, or as a decorator
f(x).sum().backward()                 # compiled at the first call, fast from then on
"""

from ._check import check_torch

check_torch()

from ._C import (  # noqa: E402
    CacheError,
    CacheOptions,
    CompileContext,
    ContractError,
    Error,
    Explanation,
    Graph,
    Joint,
    Node,
    Partition,
    PartitionContext,
    TensorMeta,
    UnsupportedError,
    Value,
    __version__,
    backends,
    counters,
    partition_default,
    partition_min_cut,
    reset,
)
from ._compile import CompiledFunction, compile, explain  # noqa: E402
from ._memory import checkpoint, must_save, prefer_recompute  # noqa: E402
from ._module import CompiledModule  # noqa: E402

__all__ = [
    "CacheError",
    "CacheOptions",
    "CompileContext",
    "CompiledFunction",
    "CompiledModule",
    "ContractError",
    "Error",
    "Explanation",
    "Graph",
    "Joint",
    "Node",
    "Partition",
    "PartitionContext",
    "TensorMeta",
    "UnsupportedError",
    "Value",
    "__version__",
    "backends",
    "checkpoint",
    "compile",
    "counters",
    "explain",
    "must_save",
    "partition_default",
    "partition_min_cut",
    "prefer_recompute",
    "reset",
]
