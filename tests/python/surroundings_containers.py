"""Programs whose surroundings change between calls, as in surroundings_programs: containers, modules and
their hooks, the environment."""

import collections
import contextvars
import logging
import os
import types

import numpy
import torch
from surroundings_programs import Model, doing, reads, setting

TABLE = {"deep": {"list": [1.0, 2.0]}}
variable = contextvars.ContextVar("variable", default=1.0)
log = logging.getLogger("tandem.surroundings_test")


class Listed(list):
    factor = 1.0


def containers():
    """What containers hold."""
    items = [1.0, 2.0]
    yield "item of a list", (lambda x: x * items[0]), doing(lambda: items.__setitem__(0, 3.0))
    grown = [1.0]
    yield "length of a list", (lambda x: x * len(grown)), doing(lambda: grown.append(1.0))
    again = [1.0, 2.0]
    yield "order of a list", (lambda x: x * again[0]), doing(again.reverse)
    names = {"a", "b"}
    yield "in a set", (lambda x: x * (2 if "c" in names else 1)), doing(lambda: names.add("c"))
    smaller = {"a", "b"}
    yield "length of a set", (lambda x: x * len(smaller)), doing(lambda: smaller.discard("a"))
    queue = collections.deque([1.0], maxlen=3)
    yield "deque", (lambda x: x * sum(queue)), doing(lambda: queue.append(2.0))
    ordered = collections.OrderedDict(a=1.0, b=2.0)
    yield (
        "order of an ordered dict",
        (lambda x: x * next(iter(ordered.values()))),
        doing(lambda: ordered.move_to_end("a")),
    )
    plain = {"a": 1.0, "b": 2.0}
    yield (
        "order of a dict",
        (lambda x: x * next(iter(plain.values()))),
        doing(lambda: plain.update(a=plain.pop("a"))),
    )
    missing = {}
    yield "missing key", (lambda x: x * missing.get("scale", 1.0)), doing(lambda: missing.update(scale=2.0))
    yield (
        "deep in a global dict",
        (lambda x: x * TABLE["deep"]["list"][1]),
        doing(lambda: TABLE["deep"]["list"].append(TABLE["deep"]["list"].pop() + 1)),
    )
    default = collections.defaultdict(lambda: 1.0)
    default["a"] = 1.0
    yield "defaultdict", (lambda x: x * default["a"]), doing(lambda: default.update(a=2.0))
    counter = collections.Counter("aab")
    yield "counter", (lambda x: x * counter["a"]), doing(lambda: counter.update("a"))
    chained = collections.ChainMap({}, {"scale": 1.0})
    yield "chain of maps", (lambda x: x * chained["scale"]), doing(lambda: chained.maps[0].update(scale=2.0))
    proxy = types.MappingProxyType(behind := {"scale": 1.0})
    yield "mapping proxy", (lambda x: x * proxy["scale"]), doing(lambda: behind.update(scale=2.0))
    listed = Listed([1.0])
    yield "subclass of a list", (lambda x: x * listed[0]), doing(lambda: listed.__setitem__(0, 2.0))
    attribute = Listed([1.0])
    yield "attribute of a list", (lambda x: x * attribute.factor), setting(attribute, "factor", 2.0)
    pair = (1.0, [1.0])
    yield "list in a tuple", (lambda x: x * pair[1][0]), doing(lambda: pair[1].__setitem__(0, 2.0))
    point = collections.namedtuple("Point", "a")([1.0])
    yield "list in a named tuple", (lambda x: x * point.a[0]), doing(lambda: point.a.__setitem__(0, 2.0))
    array = numpy.ones(3)
    yield "array of NumPy's", (lambda x: x * float(array[1])), doing(lambda: array.__setitem__(1, 2.0))
    strided = numpy.ones((3, 4))
    yield (
        "column of an array",
        (lambda column: lambda x: x * float(column[1]))(strided[:, 2]),
        doing(lambda: strided.__setitem__((1, 2), 2.0)),
    )
    number = types.SimpleNamespace(scale=numpy.float64(1.0))
    yield "number of NumPy's", reads(number), setting(number, "scale", numpy.float64(2.0))
    buffer = bytearray(b"ab")
    yield "bytearray", (lambda x: x * buffer[0]), doing(lambda: buffer.__setitem__(0, 3))
    replaced = types.SimpleNamespace(items=[1.0])
    yield (
        "list replaced by an equal place",
        (lambda x: x * replaced.items[0]),
        doing(lambda: (delattr(replaced, "items"), setattr(replaced, "items", [2.0]))),
    )
    tensors = [torch.ones(1)]
    yield (
        "tensor in a list",
        (lambda x: x * tensors[0]),
        doing(lambda: tensors.__setitem__(0, torch.full((1,), 3.0))),
    )
    typed = [1]
    yield (
        "number of another type",
        (lambda x: x * typed[0] if isinstance(typed[0], int) else -x),
        doing(lambda: typed.__setitem__(0, 1.0)),
    )
    signed = [0.0]
    yield "sign of zero", (lambda x: x / signed[0]), doing(lambda: signed.__setitem__(0, -0.0))
    truth = [1]
    yield (
        "true for one",
        (lambda x: x * 2 if truth[0] is True else x),
        doing(lambda: truth.__setitem__(0, True)),
    )


def elsewhere():
    """Modules and their hooks, the environment, flags."""
    model = Model()
    yield "module appended", model, doing(lambda: model.layers.append(torch.nn.Tanh()))
    swapped = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
    yield "module replaced", swapped, doing(lambda: swapped.__setitem__(1, torch.nn.Sigmoid()))
    dropout = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Dropout(1.0)))
    dropout[1].eval()
    yield "training of a submodule", dropout, doing(lambda: dropout[1][0].train())
    hooked = torch.nn.Sequential(torch.nn.ReLU())
    yield (
        "hook registered later",
        hooked,
        doing(lambda: hooked[0].register_forward_hook(lambda m, i, o: o * 3)),
    )
    before = torch.nn.Sequential(torch.nn.ReLU())
    yield (
        "pre-hook registered later",
        before,
        doing(lambda: before[0].register_forward_pre_hook(lambda m, i: (i[0] * 3,))),
    )
    hooks = []
    yield (
        "hook on all modules",
        torch.nn.ReLU(),
        doing(
            lambda: hooks.append(torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: o * 3)),
            lambda: hooks.pop().remove(),
        ),
    )
    yield (
        "pre-hook on all modules",
        (lambda x, m=torch.nn.ReLU(): m(x)),
        doing(
            lambda: hooks.append(
                torch.nn.modules.module.register_module_forward_pre_hook(lambda m, i: (i[0] * 3,))
            ),
            lambda: hooks.pop().remove(),
        ),
    )
    factor = types.SimpleNamespace(scale=1.0)
    reading = torch.nn.Sequential(torch.nn.ReLU())
    reading[0].register_forward_hook(lambda m, i, o: o * factor.scale)
    yield "what a hook reads", reading, setting(factor, "scale", 2.0)
    linear = torch.nn.Linear(1, 1)
    yield (
        "parameter replaced",
        linear,
        doing(lambda: setattr(linear, "weight", torch.nn.Parameter(torch.full((1, 1), 7.0)))),
    )
    frozen = torch.nn.Linear(1, 1)
    yield (
        "requires_grad of a parameter",
        (lambda x: x * (2 if frozen.weight.requires_grad else 3)),
        doing(lambda: frozen.requires_grad_(False)),
    )
    buffered = torch.nn.BatchNorm1d(1).eval()
    yield (
        "buffer replaced",
        (lambda x: buffered(x.reshape(-1, 1))),
        doing(lambda: setattr(buffered, "running_mean", torch.full((1,), 5.0))),
    )
    options = torch.nn.LeakyReLU(0.5)
    yield "option of a module", (lambda x: options(-x)), setting(options, "negative_slope", 0.25)
    os.environ.pop("TANDEM_SURROUNDINGS_TEST", None)

    def unset():
        os.environ.pop("TANDEM_SURROUNDINGS_TEST")

    for name, read in (("get", os.environ.get), ("getenv", os.getenv)):
        yield (
            f"environment by {name}",
            (lambda read: lambda x: x * float(read("TANDEM_SURROUNDINGS_TEST", "1")))(read),
            doing(lambda: os.environ.update(TANDEM_SURROUNDINGS_TEST="2"), unset),
        )
    yield (
        "environment by in",
        (lambda x: x * (2 if "TANDEM_SURROUNDINGS_TEST" in os.environ else 1)),
        doing(lambda: os.environ.update(TANDEM_SURROUNDINGS_TEST="2"), unset),
    )
    yield (
        "context variable",
        (lambda x: x * variable.get()),
        doing(lambda: variable.set(2.0), lambda: variable.set(1.0)),
    )
    yield (
        "logging level",
        (lambda x: x * (2 if log.isEnabledFor(logging.DEBUG) else 1)),
        doing(lambda: log.setLevel(logging.DEBUG), lambda: log.setLevel(logging.NOTSET)),
    )
    parameter = torch.nn.Parameter(torch.ones(1))
    yield (
        "gradient of a parameter",
        (lambda x: x * (2 if parameter.grad is None else 1)),
        doing(lambda: setattr(parameter, "grad", torch.ones(1))),
    )
    precision = torch.get_float32_matmul_precision()
    yield (
        "precision of products",
        (lambda x: x * (2 if torch.get_float32_matmul_precision() == "medium" else 1)),
        doing(
            lambda: torch.set_float32_matmul_precision("medium"),
            lambda: torch.set_float32_matmul_precision(precision),
        ),
    )
    yield (
        "default dtype",
        (lambda x: x * torch.ones(1).double().sum().to(x.dtype) * torch.get_default_dtype().itemsize),
        doing(lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32)),
    )
    yield (
        "grad mode",
        (lambda x: x * (2 if torch.is_grad_enabled() else 1)),
        doing(lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True)),
    )


PROGRAMS = (containers, elsewhere)
