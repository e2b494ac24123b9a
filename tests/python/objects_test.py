"""Objects that a compiled function makes and returns: caches of keys and values, results of libraries."""

import functools
import unittest

import torch

import tandem


class Cache:
    def __init__(self):
        self.layers = []


@functools.lru_cache
def shared():
    return Cache()


class Layer:
    __slots__ = ("keys", "count")


class Dictionary(dict):
    """Holds what it is given twice, as the results of libraries do."""

    def __init__(self, **items):
        super().__init__(items)
        self.__dict__.update(items)


torch.utils._pytree.register_pytree_node(
    Dictionary,
    lambda d: (list(d.values()), list(d)),
    lambda values, keys: Dictionary(**dict(zip(keys, values))),
)


def fill(x):
    cache, layer = Cache(), Layer()
    layer.keys, layer.count = x.sin(), 3
    cache.layers += [layer, layer]
    cache.itself, cache.kind, cache.seen = cache, Layer, {"tokens": 7}
    return cache


def calls(function, *args, times=5):
    compiled = tandem.compile(function)
    before = tandem.counters()["ran_uncompiled"]
    results = [compiled(*args) for _ in range(times)]
    return results, tandem.counters()["ran_uncompiled"] - before


class Objects(unittest.TestCase):
    def setUp(self):
        self.x = torch.tensor([1.0, 2.0], requires_grad=True)

    def check(self, cache):
        self.assertIs(type(cache), Cache)
        self.assertIs(cache.itself, cache)
        self.assertIs(cache.layers[0], cache.layers[1])
        self.assertEqual((cache.layers[0].count, cache.kind, cache.seen), (3, Layer, {"tokens": 7}))
        self.assertTrue(torch.equal(cache.layers[0].keys, self.x.sin()))
        self.assertEqual(list(vars(cache)), list(vars(fill(self.x))))
        (gradient,) = torch.autograd.grad(cache.layers[0].keys.sum(), self.x)
        self.assertTrue(torch.equal(gradient, self.x.cos()))

    def test_they_come_back_whole(self):
        for function, cache_of in (
            (fill, lambda result: result),
            (lambda x: {"loss": x.sum(), "cache": fill(x)}, lambda result: result["cache"]),
            (lambda x: Dictionary(loss=x.sum(), cache=fill(x)), lambda result: result.cache),
        ):
            results, uncompiled = calls(function, self.x)
            self.assertEqual(uncompiled, 0)
            for result in results:
                self.check(cache_of(result))
            self.assertEqual(len({id(cache_of(result)) for result in results}), len(results))

    def test_those_that_were_there_before_are_themselves(self):
        before = shared()
        results, uncompiled = calls(lambda x: (x * 2, shared()), self.x)
        self.assertTrue(all(found is before for _, found in results))
        self.assertEqual(uncompiled, len(results))

    def test_those_that_are_kept_are_the_ones_that_come_back(self):
        kept = {}

        def function(x):
            cache = fill(x)
            kept[len(kept)] = cache
            return cache

        results, _ = calls(function, self.x)
        self.assertEqual([id(cache) for cache in kept.values()], [id(cache) for cache in results])

    def test_what_cannot_be_seen_runs_as_it_is(self):
        def function(x):
            cache = fill(x)
            cache.later = lambda: x
            return cache

        results, uncompiled = calls(function, self.x)
        self.assertEqual(uncompiled, len(results))
        self.assertTrue(all(cache.later() is self.x for cache in results))


if __name__ == "__main__":
    unittest.main()
