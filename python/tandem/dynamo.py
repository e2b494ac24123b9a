"""torch.compile(model, backend="tandem"): Dynamo's graphs go through the same door as everything else."""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from . import _C
from ._compile import make_options
from ._memory import must_save, prefer_recompute

_WRITING_OPERATORS = {operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.setitem}

for _mark in (must_save, prefer_recompute):
    torch.compiler.allow_in_graph(_mark)


def backend(
    module: torch.fx.GraphModule,
    example_inputs: list[Any],
    *,
    options: dict[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """The compiled form of one graph of Dynamo's; `options` are the keywords of tandem.compile. A graph that
    cannot be compiled runs as it is."""
    if mode not in (None, "default"):
        raise TypeError(
            f"torch.compile(backend='tandem') has no mode {mode!r}; "
            "use options={...} with the keywords of tandem.compile"
        )
    if any(_is_nested(given) for given in example_inputs) or _reads_versions(module):
        return module.forward
    numbers = _take_numbers(module)
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            _take_checkpoints(part)
            _ = (
                part.code
            )  # written at its first use, which during a trace would count as a change of the module
    # Dynamo checks at every call that the program is the one that the graph was made of.
    static = _static_tensors(module, example_inputs, numbers)
    defaults = {"name": _name(), "watched_calls": False, "static_arguments": static}
    function = _C.Callable(module.forward, [module], make_options({**defaults, **(options or {})}, module))
    return torch._dynamo.disable(_with_numbers(function, numbers) if numbers else function)


def _is_nested(given: Any) -> bool:
    """A nested tensor, or one of its sizes, which is no number."""
    return (
        given.is_nested
        if isinstance(given, torch.Tensor)
        else isinstance(given, torch.SymInt) and given.node.is_nested_int()
    )


def _reads_versions(module: torch.fx.GraphModule) -> bool:
    """Of tensors, which count writes by whomever: no operator of libtorch's does."""
    parts = (part for part in module.modules() if isinstance(part, torch.fx.GraphModule))
    return any(
        node.op == "call_function" and node.target.__name__ == "_tensor_version.default"
        for part in parts
        for node in part.graph.nodes
    )


def _name() -> str:
    compile_id = torch._guards.CompileContext.current_compile_id()
    return f"graph {compile_id} of torch.compile" if compile_id else "graph of torch.compile"


def _take_numbers(module: torch.fx.GraphModule) -> list[int]:
    """Dynamo hands over Python numbers that change as tensors, of which the graph asks `item()`. Such an
    input becomes the number itself; says which ones did."""
    numbers = []
    for position, given in enumerate(module.graph.find_nodes(op="placeholder")):
        asked = list(given.users)
        if not asked or any(
            (user.op, user.target, user.args) != ("call_method", "item", (given,)) for user in asked
        ):
            continue
        for user in asked:
            user.replace_all_uses_with(given)
            module.graph.erase_node(user)
        numbers.append(position)
    if numbers:
        module.recompile()
    return numbers


def _static_tensors(module: torch.fx.GraphModule, example_inputs: list[Any], numbers: list[int]) -> list[int]:
    """Which of the tensors stay where they are: Dynamo marks parameters and buffers, which it hands over."""
    nodes = enumerate(zip(module.graph.find_nodes(op="placeholder"), example_inputs))
    tensors = [node for i, (node, given) in nodes if isinstance(given, torch.Tensor) and i not in numbers]
    marks = [node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type") for node in tensors]
    return [i for i, mark in enumerate(marks) if mark]


def _take_checkpoints(module: torch.fx.GraphModule) -> None:
    """Dynamo's own form of a checkpoint leaves it to the compiler that the same random numbers are drawn
    again; torch's does that itself."""
    found = _checkpoints_in(module)
    for node in found:
        node.target = _checkpoint
    if found:
        module.recompile()


def _checkpoints_in(module: torch.fx.GraphModule) -> list[torch.fx.Node]:
    targets = (torch.ops.higher_order.tag_activation_checkpoint, _checkpoint)
    return [node for target in targets for node in module.graph.find_nodes(op="call_function", target=target)]


def _checkpoint(part: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
    options, given = torch.ops.higher_order.tag_activation_checkpoint.divide_kwargs(kwargs)
    if "_checkpoint_context_fn" in part.meta:
        options["context_fn"] = part.meta["_checkpoint_context_fn"]
    # What is passed must not be written before the backward; buffers, which Dynamo passes too, may be.
    kept = {position: args[position] for position in _written_by(part)}
    passed = [value for position, value in enumerate(args) if position not in kept]

    def run(*values: Any, **others: Any) -> Any:
        rest = iter(values)
        # Its forward: a graph that is called as a module writes every error to stderr, the refusals of
        # a trace too.
        return part.forward(*(kept[i] if i in kept else next(rest) for i in range(len(args))), **others)

    return checkpoint(run, *passed, **{**options, **given, "use_reentrant": False})


def _written_by(part: torch.fx.GraphModule) -> set[int]:
    """The positions of the arguments that a graph writes."""
    written = {node.args[0] for node in part.graph.nodes if _is_write(node)}
    for node in _checkpoints_in(part):
        inner = part.get_submodule(node.args[0].target)
        written |= {node.args[1 + position] for position in _written_by(inner)}
    return {
        position for position, given in enumerate(part.graph.find_nodes(op="placeholder")) if given in written
    }


def _is_write(node: torch.fx.Node) -> bool:
    if node.op == "call_method":
        return node.target.endswith("_") and not node.target.endswith("__")
    if node.op != "call_function":
        return False
    return (
        node.target in _WRITING_OPERATORS
        or node.target.__name__.endswith("_")
        and not node.target.__name__.endswith("__")
    )


def _with_numbers(function: Callable[..., Any], numbers: list[int]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        given = list(args)
        for position in numbers:
            given[position] = given[position].item()
        return function(*given)

    return call


backend.reset = _C.reset  # type: ignore[attr-defined]
