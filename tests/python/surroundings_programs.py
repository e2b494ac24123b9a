"""Programs whose surroundings change between calls. Each is made anew by a function that returns it and what
changes them; a generator undoes that in its end."""

import argparse
import contextlib
import dataclasses
import enum
import functools
import types
import weakref

import torch

SCALE, TABLE, act = 1.0, {"relu": torch.relu}, torch.relu
shared = types.SimpleNamespace(inner=types.SimpleNamespace(scale=1.0))


class Plain:
    scale = 1.0


class Given:
    def __init__(self, scale=1.0):
        self.scale = scale


class Child(Plain):
    pass


class Slots:
    __slots__ = ("scale", "__weakref__")

    def __init__(self):
        self.scale = 1.0


class BareSlots:
    __slots__ = ("scale",)

    def __init__(self):
        self.scale = 1.0


@dataclasses.dataclass
class Config:
    scale: float = 1.0
    inner: object = None


@dataclasses.dataclass(slots=True)
class SlottedConfig:
    scale: float = 1.0


class Property:
    def __init__(self):
        self._scale = 1.0

    @property
    def scale(self):
        return self._scale


class Dynamic:
    def __init__(self):
        self.__dict__["values"] = {"scale": 1.0}

    def __getattr__(self, name):
        return self.values[name]


class Mode(enum.Enum):
    ONCE = 1
    TWICE = 2


class Described:
    class Scale:
        def __init__(self):
            self.value = 1.0

        def __get__(self, instance, owner):
            return self.value

    scale = Scale()


class Meta(type):
    scale = 1.0


class WithMeta(metaclass=Meta):
    pass


class Callable:
    def __init__(self):
        self.scale = 1.0

    def __call__(self, x):
        return x * self.scale


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * SCALE


class Model(torch.nn.Module):
    scale = 1.0

    def __init__(self, config=None):
        super().__init__()
        self.config, self.layers = config, torch.nn.ModuleList([torch.nn.Identity(), torch.nn.ReLU()])
        self.parts = [{"config": config}]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * (self.config.scale if self.config else self.scale)


class ByName(Model):
    def forward(self, x):
        return x * getattr(self, "sca" + "le")


class Nested(Model):
    def forward(self, x):
        return x * self.parts[0]["config"].inner.scale


class ReadsGlobal(torch.nn.Module):
    def forward(self, x):
        return x * SCALE


def times(x, by=1.0, *, more=1.0):
    return x * by * more


def hook(gradient):
    return gradient * SCALE


def hooked(x):
    y = x * 1
    y.register_hook(hook)
    return y * 1


def helper(x):
    return x * SCALE


def setting(holder, name, value):
    """A change of an attribute that is undone later."""

    @contextlib.contextmanager
    def change():
        missing = object()
        own = name.startswith("__") or not hasattr(holder, "__dict__")
        before = getattr(holder, name, missing) if own else vars(holder).get(name, missing)
        setattr(holder, name, value)
        try:
            yield
        finally:
            delattr(holder, name) if before is missing else setattr(holder, name, before)

    return change


class global_set:
    def __init__(self, name, value):
        self.name, self.value = name, value

    @contextlib.contextmanager
    def __call__(self):
        before = globals()[self.name]
        globals()[self.name] = self.value
        try:
            yield
        finally:
            globals()[self.name] = before


def doing(do, undo=lambda: None):
    @contextlib.contextmanager
    def change():
        do()
        try:
            yield
        finally:
            undo()

    return change


def reads(thing):
    return lambda x: x * thing.scale


def objects():
    """Attributes of objects of all kinds, in a closure, in a module, in containers."""
    for make in (
        Given,
        Config,
        SlottedConfig,
        Slots,
        BareSlots,
        Plain,
        Child,
        lambda: types.SimpleNamespace(scale=1.0),
        lambda: argparse.Namespace(scale=1.0),
    ):
        thing = make()
        yield f"closure over {type(thing).__name__}", reads(thing), setting(thing, "scale", 2.0)
        thing = make()
        yield f"module with {type(thing).__name__}", Model(thing), setting(thing, "scale", 2.0)
        thing = make()
        yield (
            f"list with {type(thing).__name__}",
            (lambda things: lambda x: x * things[0]["a"][0].scale)([{"a": (thing,)}]),
            setting(thing, "scale", 2.0),
        )
    thing = Config(inner=Config())
    yield "object in object", (lambda x: x * thing.inner.scale), setting(thing.inner, "scale", 2.0)
    other = Config(inner=Config())
    yield "config in dict in list in module", Nested(other), setting(other.inner, "scale", 2.0)
    yield "object replaced in object", Nested(other), setting(other, "inner", Config(3.0))
    yield "global object in object", (lambda x: x * shared.inner.scale), setting(shared.inner, "scale", 2.0)
    yield "class attribute", reads(Plain()), setting(Plain, "scale", 2.0)
    yield "inherited class attribute", reads(Child()), setting(Plain, "scale", 2.0)
    yield "class attribute overridden below", reads(Child()), setting(Child, "scale", 2.0)
    yield "class attribute of a class", (lambda x: x * Child.scale), setting(Plain, "scale", 2.0)
    yield "class attribute of a module", Model(), setting(Model, "scale", 2.0)
    model = Model()
    yield "class attribute hidden by an instance", model, setting(model, "scale", 2.0)
    named = ByName()
    yield "attribute by a computed name", named, setting(named, "scale", 2.0)
    computed = Property()
    yield "property", reads(computed), setting(computed, "_scale", 2.0)
    yield "property replaced", reads(Property()), setting(Property, "scale", property(lambda self: 3.0))
    dynamic = Dynamic()
    yield "__getattr__", reads(dynamic), doing(lambda: dynamic.values.update(scale=2.0))
    yield "descriptor", reads(Described()), setting(Described.__dict__["scale"], "value", 2.0)
    yield "metaclass", (lambda x: x * WithMeta.scale), setting(Meta, "scale", 2.0)
    moved = Given()
    yield (
        "class of an object",
        (lambda x: x * (2 if isinstance(moved, Callable) else 1)),
        setting(moved, "__class__", Callable),
    )
    replaced = Given()
    yield "dict of an object", reads(replaced), setting(replaced, "__dict__", {"scale": 2.0})
    weak = Given()
    yield (
        "behind a weak reference",
        (lambda ref: lambda x: x * ref().scale)(weakref.ref(weak)),
        setting(weak, "scale", 2.0),
    )
    mode = types.SimpleNamespace(now=Mode.ONCE)
    yield "enum", (lambda x: x * mode.now.value), setting(mode, "now", Mode.TWICE)
    called = Callable()
    yield "callable object", called, setting(called, "scale", 2.0)
    yield "bound method", called.__call__, setting(called, "scale", 2.0)
    tensor = torch.ones(1)
    tensor.scale = 1.0
    yield "attribute of a tensor", reads(tensor), setting(tensor, "scale", 2.0)
    bare = torch.ones(1)
    yield (
        "new attribute of a tensor",
        (lambda x: x * getattr(bare, "scale", 1.0)),
        setting(bare, "scale", 2.0),
    )
    holder = Given(torch.ones(1))
    yield "another tensor", reads(holder), setting(holder, "scale", torch.full((1,), 3.0))
    yield (
        "object made equal and moved",
        (lambda things: lambda x: x * things.a.scale)(pair := types.SimpleNamespace(a=Given())),
        setting(pair, "a", Given(4.0)),
    )


def functions():
    """Code, and what functions hold."""
    yield "global", helper, global_set("SCALE", 2.0)
    yield "global of a helper", (lambda x: helper(x)), global_set("SCALE", 2.0)
    yield "global in forward", ReadsGlobal(), global_set("SCALE", 2.0)
    yield (
        "global in a comprehension",
        (lambda x: sum([x * SCALE for _ in range(1)])),
        global_set("SCALE", 2.0),
    )
    yield "global in a generator", (lambda x: sum(x * SCALE for _ in range(1))), global_set("SCALE", 2.0)
    yield "global by globals()", (lambda x: x * globals()["SCALE"]), global_set("SCALE", 2.0)
    yield "swapped function", (lambda x: act(-x)), global_set("act", torch.abs)
    yield "swapped helper", (lambda x: helper(x)), global_set("helper", lambda x: x * 5)
    yield (
        "function in a dict",
        (lambda x: TABLE["relu"](-x)),
        doing(lambda: TABLE.update(relu=torch.abs), lambda: TABLE.update(relu=torch.relu)),
    )
    local = [torch.relu]
    yield "function in a list", (lambda x: local[0](-x)), doing(lambda: local.__setitem__(0, torch.abs))
    yield (
        "swapped class",
        (lambda x: x * (2 if isinstance(shared, Plain) else 1)),
        global_set("Plain", types.SimpleNamespace),
    )
    yield "default argument", times, setting(times, "__defaults__", (2.0,))
    yield "keyword default", times, setting(times, "__kwdefaults__", {"more": 2.0})
    yield "default of a helper", (lambda x: times(x)), setting(times, "__defaults__", (2.0,))
    yield "code of a helper", (lambda x: helper(x)), setting(helper, "__code__", (lambda x: x * 7).__code__)
    inside = [1.0]
    yield "list in a default", (lambda x, by=inside: x * by[0]), doing(lambda: inside.__setitem__(0, 2.0))
    partial = functools.partial(times, by=1.0)
    yield "keywords of a partial", partial, doing(lambda: partial.keywords.update(by=2.0))
    yield (
        "keywords of a partial inside",
        (lambda x: partial(x)),
        doing(lambda: partial.keywords.update(by=3.0)),
    )
    bound = functools.partial(lambda config, x: x * config.scale, config := Given())
    yield "argument of a partial", bound, setting(config, "scale", 2.0)
    cell = 1.0

    def rebind(value):
        nonlocal cell
        cell = value

    yield (
        "variable of an enclosing function",
        (lambda x: x * cell),
        doing(lambda: rebind(2.0), lambda: rebind(1.0)),
    )
    yield (
        "variable read by a helper",
        (lambda inner: lambda x: inner(x))(lambda x: x * cell),
        doing(lambda: rebind(3.0), lambda: rebind(1.0)),
    )
    marked = functools.wraps(helper)(lambda x: x * marked.scale)
    marked.scale = 1.0
    yield "attribute of a function", marked, setting(marked, "scale", 2.0)

    @functools.wraps(times)
    def decorated(x):
        return times(x) * SCALE

    yield "decorated", decorated, global_set("SCALE", 2.0)
    yield "under no_grad", torch.no_grad()(lambda x: x * SCALE), global_set("SCALE", 2.0)
    model = Model()
    yield "method of a class", model, setting(Model, "forward", lambda self, x: x * 9)
    other = Model()
    yield "method of an instance", other, setting(other, "forward", lambda x: x * 9)
    yield (
        "method of a helper object",
        reads(Property()),
        setting(Property, "__getattribute__", lambda self, name: 4.0),
    )
    yield (
        "method of torch's",
        torch.nn.Sequential(torch.nn.ReLU()),
        setting(torch.nn.ReLU, "forward", lambda self, x: x * 9),
    )
    yield (
        "function of torch's",
        (lambda x: torch.nn.functional.relu(-x)),
        setting(torch.nn.functional, "relu", torch.abs),
    )
    yield (
        "function that torch's modules call",
        torch.nn.ReLU(),
        setting(torch.nn.functional, "relu", lambda x, inplace=False: x * 3),
    )
    yield (
        "shadowed builtin",
        (lambda x: x * float(len([1, 2]))),
        doing(lambda: globals().update(len=lambda of: 5), lambda: globals().pop("len")),
    )
    module = types.ModuleType("a_module_of_the_users")
    module.scale, module.inner = 1.0, types.ModuleType("a_module_of_the_users.inner")
    module.inner.scale = 1.0
    yield "variable of a module", (lambda x: x * module.scale), setting(module, "scale", 2.0)
    yield (
        "variable of a module in a module",
        (lambda x: x * module.inner.scale),
        setting(module.inner, "scale", 2.0),
    )
    yield (
        "module as an attribute",
        (lambda h: lambda x: x * h.m.scale)(types.SimpleNamespace(m=module)),
        setting(module, "scale", 3.0),
    )
    yield "custom function's backward", (lambda x: Cube.apply(x)), global_set("SCALE", 2.0)
    yield "hook of a tensor", hooked, global_set("SCALE", 2.0)


PROGRAMS = (objects, functions)
