"""Objects that go in and come out keep their type, every attribute, and their identity."""

import collections
import dataclasses
import enum
import unittest
from typing import Any

import torch

import tandem


@dataclasses.dataclass
class Output:
    a: torch.Tensor
    extra: Any = None

    def __post_init__(self):
        self.double = self.a * 2


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: torch.Tensor


@dataclasses.dataclass(slots=True)
class Slotted:
    a: torch.Tensor
    b: Any = dataclasses.field(init=False)


@dataclasses.dataclass
class Mapping(dict):
    a: Any = None


Point = collections.namedtuple("Point", "x y")


class Named(Point):
    def __new__(cls, x, y):
        return super().__new__(cls, x + x, y)


class Pair(tuple):
    def __new__(cls, first, second):
        return super().__new__(cls, (first, second))


class Kind(enum.Enum):
    GOOD = 1


class Layer:
    def __init__(self):
        self.keys = torch.zeros(0, 1)


class Cache:
    def __init__(self):
        self.layers = [Layer(), Layer()]

    def update(self, k, i):
        self.layers[i].keys = torch.cat([self.layers[i].keys, k])
        return self.layers[i].keys


def shown(value):
    """Types, numbers and attributes all the way down."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    parts = [type(value)]
    if isinstance(value, (list, tuple)):
        parts += [shown(item) for item in value]
    elif isinstance(value, dict):
        parts += [(key, shown(item)) for key, item in value.items()]
    elif not hasattr(value, "__dict__") and not dataclasses.is_dataclass(value):
        parts.append(value)
    if dataclasses.is_dataclass(value):
        parts += [
            (field.name, shown(getattr(value, field.name, "unset"))) for field in dataclasses.fields(value)
        ]
    if not isinstance(value, (enum.Enum, type)):
        parts += [(key, shown(item)) for key, item in getattr(value, "__dict__", {}).items()]
    return parts


class Whole(unittest.TestCase):
    def setUp(self):
        tandem.reset()
        self.x = torch.tensor([1.0, 2.0])

    def same(self, function, *arguments, compiles=True):
        for watched in (False, True):
            compiled = tandem.compile(function, watched_calls=watched)
            for _ in range(3):
                self.assertEqual(shown(compiled(*arguments)), shown(function(*arguments)))
            if compiles:
                self.assertEqual(tandem.explain(compiled, *arguments).eager_reason, "")

    def test_attributes_of_results_that_are_no_fields(self):
        def make(x):
            output = Output(x, extra=[x + 1, "text"])
            output.note, output.later, output.inner = "hi", x * 3, Output(x)
            del output.inner.extra
            return output

        self.same(make, self.x)

    def test_attributes_of_arguments_that_are_no_fields(self):
        output = Output(self.x)
        output.later = self.x * 3
        self.same(lambda o: o.a + o.double + o.later, output)

        compiled = tandem.compile(lambda o: o.a * o.factor, watched_calls=False)
        for output.factor in (2, 3, torch.tensor(4.0)):
            self.assertEqual(compiled(output).tolist(), (output.a * output.factor).tolist())

    def test_frozen_and_slotted(self):
        self.same(lambda x: Frozen(x * 2), self.x)
        self.same(lambda x: [Slotted(x * 2), Slotted(None)], self.x)

        def with_both(x):
            made = Slotted(x)
            made.b = x * 2
            return made

        self.same(with_both, self.x)
        self.same(lambda s: s.a * 2, Slotted(self.x))

    def test_a_dataclass_that_is_a_dict_too(self):
        def make(x):
            made = Mapping(x)
            made["b"] = x * 2
            return made

        self.same(make, self.x, compiles=False)

    def test_kinds_of_tuples(self):
        def attributed(x):
            made = Named(x, x * 2)
            made.note, made.more = "hi", x * 3
            return made

        self.same(lambda x: Point(x, x * 2), self.x)
        self.same(attributed, self.x)
        self.same(lambda x: Pair(x, {"a": x * 2}), self.x)
        self.same(lambda p: p.x * p.y, Named(self.x, 3))
        self.same(lambda p: p.x * p.more, attributed(self.x))
        self.same(lambda x: (x.max(0), x.shape, Kind.GOOD, torch.float32), self.x)

    def test_containers_that_were_given_come_back_themselves(self):
        given = {"a": [self.x, 2], "b": Output(self.x)}
        for watched in (False, True):
            compiled = tandem.compile(lambda x, d: (x * d["a"][1], d, d["a"], d["b"]), watched_calls=watched)
            for _ in range(3):
                _, whole, items, output = compiled(self.x, given)
                self.assertTrue(whole is given and items is given["a"] and output is given["b"])
            self.assertEqual(tandem.explain(compiled, self.x, given).eager_reason, "")

    def test_containers_that_were_there_come_back_themselves(self):
        kept = [self.x]
        compiled = tandem.compile(lambda x: (x * 2, kept), watched_calls=False)
        for _ in range(3):
            self.assertIs(compiled(self.x)[1], kept)

    def test_caches_as_arguments(self):
        def step(x, cache, extra):
            return (
                cache.update(x, 0).sum() + cache.update(x * 2, 1).mean() + extra["cache"].update(x, 1).sum()
            )

        for watched in (False, True):
            outcomes = []
            for function in (step, tandem.compile(step, watched_calls=watched)):
                cache, other = Cache(), Cache()
                seen = [
                    function(torch.full((1, 1), k + 1.0), cache, {"cache": other}).item() for k in range(5)
                ]
                outcomes.append((seen, [layer.keys.tolist() for layer in cache.layers + other.layers]))
            self.assertEqual(*outcomes)

    def test_caches_that_are_only_read(self):
        cache = Cache()
        cache.layers[1].keys = torch.ones(2, 1)
        compiled = tandem.compile(lambda x, c: x + c.layers[1].keys.sum(), watched_calls=False)
        self.assertEqual(compiled(self.x, cache).tolist(), [3, 4])
        self.assertEqual(tandem.explain(compiled, self.x, cache).eager_reason, "")
        cache.layers[1].keys.mul_(2)
        self.assertEqual(compiled(self.x, cache).tolist(), [5, 6])
        cache.layers[1].keys = torch.ones(7, 1)
        self.assertEqual(compiled(self.x, cache).tolist(), [8, 9])
        cache.layers.reverse()
        self.assertEqual(compiled(self.x, cache).tolist(), [1, 2])


if __name__ == "__main__":
    unittest.main()
