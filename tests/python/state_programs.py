"""Programs that keep state in Python's objects. Each is made anew by a function that returns it, further
arguments, and something to look at afterwards."""

import collections
import dataclasses
import functools
import types

import torch

total, registry = 0, {"calls": [0]}


def count_globally():
    global total
    total += 1
    return total


def made_late():
    global late
    try:
        late += 1
    except NameError:
        late = 1
    return late


class Layer:
    def __init__(self):
        self.keys = torch.zeros(0, 1)


class Cache:
    def __init__(self):
        self.layers = [Layer()]

    def update(self, k):
        self.layers[0].keys = torch.cat([self.layers[0].keys, k])
        return self.layers[0].keys


class Slotted:
    __slots__ = ("count", "unset")

    def __init__(self):
        self.count = 0


class Sloppy(dict):
    pass


@dataclasses.dataclass
class Stats:
    seen: list
    mean: object = None


class Counting(torch.nn.Module):
    instances_called = 0

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(1, 1, bias=False)
        self.inner.config = types.SimpleNamespace(history=collections.deque(maxlen=2), depth={"calls": {0}})

    def forward(self, x):
        type(self).instances_called += 1
        self.inner.config.history.append(x.sum() + self.instances_called)
        self.inner.config.depth["calls"].add(self.instances_called)
        return x * self.instances_called


def seen(value):
    """Everything in it as numbers."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, (list, tuple, set, collections.deque)):
        return [seen(item) for item in value]
    if isinstance(value, dict):
        return [(key if isinstance(key, str) else "?", seen(item)) for key, item in value.items()]
    if hasattr(value, "__dict__"):
        return seen({key: item for key, item in vars(value).items() if not key.startswith("_")})
    return value


def object_given():
    cache = Cache()
    return (lambda x, c: c.update(x).sum()), (cache,), cache


class Lazy:
    def __init__(self):
        self.ready = False


def made_at_first_use():
    cache = types.SimpleNamespace(layers=[Lazy()])

    def function(x, cache):
        layer = cache.layers[0]
        if not layer.ready:
            layer.keys, layer.ready = torch.zeros(8), True
        layer.keys.index_add_(0, torch.tensor([3]), x.flatten())
        return layer.keys.sum()

    return function, (cache,), cache


def object_captured():
    cache = {"deep": [Cache()]}
    return (lambda x: cache["deep"][0].update(x).sum()), (), cache


def helper_counts():
    calls = [0, (0, {"n": 0})]

    def helper():
        calls[0] += 1
        calls[1][1]["n"] += calls[0]
        return calls[1][1]["n"]

    return (lambda x: x * helper()), (), calls


def enclosing_variable_of_a_helper():
    calls = 0

    def helper():
        nonlocal calls
        calls += 1
        return calls

    return (lambda x: x * sum([helper() for _ in range(2)])), (), None


def default_argument():
    kept = []

    def function(x, history=kept):
        history.append(x + len(history))
        return history[-1]

    return function, (), kept


def attribute_of_a_function():
    def function(x):
        function.calls = getattr(function, "calls", 0) + 1
        return x * function.calls

    return function, (), None


def slots():
    slotted = Slotted()

    def function(x):
        slotted.count += 1
        if slotted.count > 1:
            slotted.unset = x * 2
        return x * slotted.count

    return function, (), None


def dict_of_the_users():
    kept = Sloppy(a=1)
    kept.extra = []

    def function(x):
        kept["a"] += 1
        kept.extra.append(x)
        return x * kept["a"] * len(kept.extra)

    return function, (), kept


def order_of_a_dict():
    kept = collections.OrderedDict(a=1, b=2, c=3)

    def function(x):
        kept.move_to_end(next(iter(kept)))
        return x * next(iter(kept.values()))

    return function, (), kept


def given_dataclass():
    holder = types.SimpleNamespace(stats=Stats([]))

    def function(x, holder):
        holder.stats.seen.append(x.sum())
        holder.stats.mean = torch.stack(holder.stats.seen).mean()
        return x - holder.stats.mean

    return function, (holder,), holder


def tensors_attribute():
    weight = torch.nn.Parameter(torch.ones(1))

    def function(x):
        weight.average = getattr(weight, "average", 0) * 0.5 + x.detach().mean()
        return x * weight * weight.average

    return function, (), None


def module_of_the_users():
    module = types.ModuleType("module_of_the_users")
    module.count = 0
    module.inner = types.ModuleType("module_of_the_users.inner")
    module.inner.kept = []

    def function(x):
        module.count += 1
        module.inner.kept.append(x)
        return x * module.count * len(module.inner.kept)

    return function, (), module.inner.kept


def partial_function_and_bound_method():
    kept = []
    push = functools.partial(lambda to, x: to.append(x), kept)
    push_again = kept.append

    def function(x):
        push(x + 1)
        push_again(x + 2)
        return x * len(kept)

    return function, (), kept


def forward_hook():
    linear, kept = torch.nn.Linear(1, 1), {}
    torch.nn.init.ones_(linear.weight), torch.nn.init.ones_(linear.bias)
    linear.register_forward_hook(lambda module, inputs, output: kept.__setitem__("a", output.detach()))
    return linear, (), kept


def state_before_a_look_at_data():
    kept = {"n": [[]]}

    def function(x):
        kept["n"][0].append(x * 2)
        return x * x.sum().item()

    return function, (), kept


def globals_of_helpers():
    def function(x):
        registry["calls"].append(count_globally())
        return x * total * len(registry["calls"])

    return function, (), registry


def uses_plugin(x):
    import plugin_of_state_test  # noqa: F401

    return registry["double"](x)


def global_that_is_not_there_yet():
    return (lambda x: x * made_late()), (), None


def attributes_of_a_class_and_below_a_module():
    counting = Counting()
    return counting, (), counting.inner.config


PROGRAMS = (
    object_given, made_at_first_use, object_captured, helper_counts, enclosing_variable_of_a_helper,
    default_argument, attribute_of_a_function, slots, dict_of_the_users, order_of_a_dict, given_dataclass,
    tensors_attribute, module_of_the_users, partial_function_and_bound_method, forward_hook,
    state_before_a_look_at_data, globals_of_helpers, global_that_is_not_there_yet,
    attributes_of_a_class_and_below_a_module,
)  # fmt: skip


def forget():
    """Sets globals and classes back to where they were."""
    global total
    total, registry["calls"], Counting.instances_called = 0, [0], 0
    globals().pop("late", None)
