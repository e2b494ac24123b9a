"""Calling what tandem.compile returns: arguments and results of any structure, options, decorators."""

import collections
import copy
import dataclasses
import functools
import pickle
import unittest

import torch

import tandem


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    scale: float


Pair = collections.namedtuple("Pair", "first second")


def traces() -> int:
    return tandem.counters()["trace"]


def double(x):
    return x * 2


class Structures(unittest.TestCase):
    def setUp(self):
        self.x = torch.randn(3, 4)

    def same(self, function, *args, **kwargs):
        compiled = tandem.compile(function)
        for _ in range(2):
            want, got = function(*args, **kwargs), compiled(*args, **kwargs)
            self.assertEqual(type(got), type(want))
            flat_want, shape_want = torch.utils._pytree.tree_flatten(want)
            flat_got, shape_got = torch.utils._pytree.tree_flatten(got)
            self.assertEqual(shape_got, shape_want)
            for a, b in zip(flat_got, flat_want):
                self.assertTrue(torch.equal(a, b) if isinstance(b, torch.Tensor) else a == b)
        self.assertEqual(tandem.explain(compiled, *args, **kwargs).eager_reason, "")
        return compiled

    def test_nested_lists_tuples_and_dicts(self):
        self.same(
            lambda x, d, s: {"y": x * s + d["mask"][0], "rest": [(x.t(), d["mask"]), 7, None, "name"]},
            self.x,
            {"mask": [self.x + 1]},
            2.0,
        )

    def test_keywords(self):
        self.same(
            lambda x, *, scale, bias=None: x * scale if bias is None else x * scale + bias,
            self.x,
            scale=3.0,
            bias=self.x,
        )

    def test_dataclasses_and_named_tuples(self):
        compiled = tandem.compile(lambda batch: Batch(batch.x * batch.scale, batch.scale + 1))
        made = compiled(Batch(self.x, 2.0))
        self.assertIsInstance(made, Batch)
        self.assertTrue(torch.equal(made.x, self.x * 2.0))
        self.assertEqual(made.scale, 3.0)
        self.same(lambda pair: Pair(pair.second, pair.first + 1), Pair(self.x, self.x * 2))

    def test_what_torch_returns(self):
        self.same(lambda x: x.max(1), self.x)
        self.same(lambda x: x.shape, self.x)

    def test_ordered_dicts_and_deques(self):
        self.same(
            lambda d: collections.OrderedDict(a=d["b"], b=d["a"] * 2),
            collections.OrderedDict(a=self.x, b=self.x + 1),
        )
        self.same(lambda q: collections.deque([q[0] + q[1]]), collections.deque([self.x, self.x]))

    def test_no_result_and_no_arguments(self):
        self.assertIsNone(tandem.compile(lambda x: None)(self.x))
        self.assertTrue(torch.equal(tandem.compile(lambda: torch.ones(2) + 1)(), torch.full((2,), 2.0)))

    def test_an_object_whose_tensors_cannot_be_seen_is_returned_as_eager_does(self):
        class Box(set):
            """Its elements have no order to be put back in."""

        compiled = tandem.compile(lambda x: Box([x * 2]))
        self.assertTrue(torch.equal(compiled(self.x).pop(), self.x * 2))
        self.assertIn("Box", tandem.explain(compiled, self.x).eager_reason)


class Signatures(unittest.TestCase):
    def test_other_numbers_are_other_traces(self):
        compiled, x = tandem.compile(lambda x, n: x * n), torch.ones(2)
        before = traces()
        for n, count in ((2, 1), (3, 2), (2, 2), (2.0, 3), (True, 3), (True, 4), (3, 4)):
            self.assertTrue(torch.equal(compiled(x, n), x * n))
            self.assertEqual(traces() - before, count, n)

    def test_dtypes_devices_and_functions_count_by_equality(self):
        compiled, x = tandem.compile(lambda x, d, f: f(x.to(d))), torch.ones(2)
        before = traces()
        for _ in range(2):
            compiled(x, torch.device("cpu"), double)
            compiled(x, torch.float64, double)
        self.assertEqual(traces() - before, 2)

    def test_what_has_no_hash_runs_as_it_is(self):
        compiled, x = tandem.compile(lambda x, s: x * len(s)), torch.ones(2)
        self.assertTrue(torch.equal(compiled(x, {1, 2}), x * 2))
        self.assertTrue(torch.equal(compiled(x, {1, 2, 3}), x * 3))

    def test_iterators_are_used_as_in_eager(self):
        compiled, x = tandem.compile(lambda x, numbers: x * next(numbers)), torch.ones(2)
        for numbers in (iter([1, 2, 3]), (n for n in (1, 2, 3))):
            self.assertEqual([compiled(x, numbers)[0].item() for _ in range(3)], [1, 2, 3])

    def test_a_changed_list_is_changed_for_the_caller(self):
        def push(x, items):
            items.append(x * 2)
            return x + 1

        compiled, items, x = tandem.compile(push), [], torch.ones(2)
        for count in (1, 2):
            compiled(x, items)
            self.assertEqual(len(items), count)
            self.assertTrue(torch.equal(items[-1], x * 2))

    def test_variables_around_a_function_are_read_at_every_call(self):
        factor, shift = 2.0, torch.ones(2)

        def scaled(x):
            return x * factor + shift

        compiled, x = tandem.compile(scaled), torch.ones(2)
        self.assertTrue(torch.equal(compiled(x), x * 3))
        factor = 4.0
        self.assertTrue(torch.equal(compiled(x), x * 5))
        shift = torch.zeros(2)
        self.assertTrue(torch.equal(compiled(x), x * 4))
        shift.add_(1)
        self.assertTrue(torch.equal(compiled(x), x * 5))

    def test_a_counter_around_a_function_counts_every_call(self):
        calls = 0

        def counted(x):
            nonlocal calls
            calls += 1
            return x + 1

        compiled, x = tandem.compile(counted), torch.ones(2)
        for wanted in (1, 2, 3):
            compiled(x)
            self.assertEqual(calls, wanted)

    def test_too_many_signatures_drop_the_oldest(self):
        compiled, x = tandem.compile(lambda x, n: x * n, max_signatures=2), torch.ones(2)
        before = tandem.counters()["signature_evicted"]
        for n in range(4):
            self.assertTrue(torch.equal(compiled(x, n), x * n))
        self.assertEqual(tandem.counters()["signature_evicted"] - before, 2)


class Forms(unittest.TestCase):
    def test_decorators_with_and_without_arguments(self):
        @tandem.compile
        def plain(x):
            """Adds one."""
            return x + 1

        @tandem.compile(backend="debug", name="other")
        def checked(x):
            return x + 2

        x = torch.ones(2)
        self.assertTrue(torch.equal(plain(x), x + 1))
        self.assertTrue(torch.equal(checked(x), x + 2))
        self.assertEqual((plain.__name__, plain.__doc__), ("plain", "Adds one."))

    def test_methods(self):
        class Model:
            def __init__(self, weight):
                self.weight = weight

            @tandem.compile
            def forward(self, x):
                return x * self.weight

        first, second, x = Model(torch.ones(2) * 3), Model(torch.ones(2) * 5), torch.ones(2)
        self.assertTrue(torch.equal(first.forward(x), x * 3))
        self.assertTrue(torch.equal(second.forward(x), x * 5))
        bound = tandem.compile(torch.nn.Linear(2, 2).forward)
        self.assertEqual(bound(x).shape, (2,))

    def test_partial_functions_and_callable_objects(self):
        x = torch.ones(2)
        self.assertTrue(torch.equal(tandem.compile(functools.partial(torch.add, alpha=3))(x, x), x * 4))

        class Doubler:
            def __call__(self, x):
                return x * 2

        self.assertTrue(torch.equal(tandem.compile(Doubler())(x), x * 2))

    def test_torch_functions_and_scripts(self):
        x = torch.randn(3)
        self.assertTrue(torch.equal(tandem.compile(torch.tanh)(x), x.tanh()))
        self.assertTrue(torch.equal(tandem.compile(torch.jit.script(double))(x), x * 2))

    def test_copies_and_pickles(self):
        compiled, x = tandem.compile(double), torch.ones(2)
        self.assertTrue(torch.equal(copy.deepcopy(compiled)(x), x * 2))
        self.assertTrue(torch.equal(pickle.loads(pickle.dumps(compiled))(x), x * 2))

    def test_a_compiled_function_inside_another(self):
        inner = tandem.compile(double)
        outer, x = tandem.compile(lambda x: inner(x) + 1), torch.ones(2)
        before = traces()
        self.assertTrue(torch.equal(outer(x), x * 3))
        self.assertEqual(traces() - before, 1)

    def test_options_that_do_not_exist(self):
        with self.assertRaisesRegex(TypeError, "colour"):
            tandem.compile(double, colour="red")
        with self.assertRaisesRegex(tandem.Error, "no backend named 'nothing'"):
            tandem.compile(double, backend="nothing")
        with self.assertRaisesRegex(TypeError, "not int"):
            tandem.compile(3)

    def test_wrong_arity_is_the_functions_own_error(self):
        with self.assertRaisesRegex(TypeError, "positional argument"):
            tandem.compile(double)(torch.ones(1), torch.ones(1))

    def test_counters_reset_and_backends(self):
        compiled, x = tandem.compile(double), torch.ones(2)
        compiled(x)
        tandem.reset()
        self.assertEqual(traces(), 0)
        compiled(x)
        self.assertEqual(traces(), 1)
        self.assertLessEqual({"eager", "debug"}, set(tandem.backends()))


if __name__ == "__main__":
    unittest.main()
