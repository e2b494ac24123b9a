"""Corners of libtorch that programs come upon: batched gradients, second backwards, numbers in the place of
tensors, layouts, marks for the profiler, operators that go."""

import gc
import unittest

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import tandem


def put(x):
    y = torch.zeros(4)
    y[[3, 1]] = x[[0, 1]] * 2
    return y


FUNCTIONS = {
    "put": put,
    "slices": lambda x: x[:1] + x[1:],
    "softmax": lambda x: F.softmax(x, 0),
    "twice": lambda x: x.sin().expand(3, 2) * 2,
}


def uncompiled(function, *args, calls=5):
    before = dict(tandem.counters())
    results = [function(*args) for _ in range(calls)]
    after = tandem.counters()
    return results, {name: after[name] - before.get(name, 0) for name in ("ran_uncompiled", "promise_broken")}


class BatchedGradients(unittest.TestCase):
    def check(self, differentiate):
        for name, function in FUNCTIONS.items():
            with self.subTest(name):
                torch.manual_seed(0)
                x = torch.randn(2, requires_grad=True)
                self.assertTrue(
                    torch.equal(differentiate(tandem.compile(function), x), differentiate(function, x))
                )

    def test_is_grads_batched(self):
        def differentiate(function, x):
            y = function(x)
            torch.manual_seed(1)
            return torch.autograd.grad(y, x, torch.randn(3, *y.shape), is_grads_batched=True)[0]

        self.check(differentiate)

    def test_a_vectorised_jacobian(self):
        self.check(lambda function, x: torch.autograd.functional.jacobian(function, x, vectorize=True))

    def test_a_vmap_of_backwards(self):
        def differentiate(function, x):
            y = function(x)
            return torch.func.vmap(lambda g: torch.autograd.grad(y, x, g, retain_graph=True)[0])(
                torch.eye(y.numel()).reshape(-1, *y.shape)
            )

        self.check(differentiate)

    def test_what_was_saved_is_gone_afterwards(self):
        x = torch.randn(2, requires_grad=True)
        y = tandem.compile(lambda x: x.sin())(x)
        torch.autograd.grad(y, x, torch.randn(3, 2), is_grads_batched=True)
        with self.assertRaisesRegex(RuntimeError, "second time"):
            torch.autograd.grad(y, x, torch.randn(3, 2), is_grads_batched=True)


class SecondBackwards(unittest.TestCase):
    """Without retain_graph libtorch's nodes give up what they saved, each at its own time."""

    ONE = {
        "put": put,
        "sum": lambda x: x.sum() + 1,
        "number": lambda x: x * 2,
        "part": lambda x: (lambda y: (y[:1].add_(1), y)[1])(x + 1),
        "attribute": lambda x: KeepsAnAttribute.apply(x),
    }
    TWO = {
        "shared input": lambda x: (x.sin(), x.cos()),
        "shared exponential": lambda x: (lambda y: (y + 1, y.sin()))(x.exp()),
        "one saves nothing": lambda x: (x.exp(), x + 1),
    }
    DOORS = {
        "compile": tandem.compile,
        "compile, unwatched": lambda function: tandem.compile(function, watched_calls=False),
        "torch.compile": lambda function: torch.compile(function, backend="tandem"),
    }

    def outcome(self, function, order):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        results = [function(x) for _ in range(2)]  # the second call is a watched one
        said = []
        for result in results:
            result = result if isinstance(result, tuple) else (result,)
            for i in order:
                try:
                    result[i].sum().backward()
                    said.append("")
                except RuntimeError as error:
                    said.append(str(error))
        return said, x.grad.tolist()

    def check(self, functions, *orders):
        for name, function in functions.items():
            for door, compiled in self.DOORS.items():
                for order in orders:
                    with self.subTest(function=name, door=door, order=order):
                        torch._dynamo.reset()
                        self.assertEqual(
                            self.outcome(compiled(function), order), self.outcome(function, order)
                        )

    def test_of_one_result(self):
        self.check(self.ONE, (0, 0))

    def test_of_two_results(self):
        self.check(self.TWO, (0, 1, 0), (1, 0, 1))


class KeepsAnAttribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.factor = x.exp()
        return ctx.factor * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor


def put_twice(x, mask):
    y = x + 2
    y[mask] = 2
    y.mul_(2)
    return y


def write_twice(x, mask):
    x.mul_(2)
    x[mask] = 3
    return x


def view_and_write(x, mask):
    y = x + 1
    part = y[1:]
    part.add_(1)
    return y, part


def only_counted(x, mask):
    torch.autograd.graph.increment_version(x)
    return x * 2


def read_versions(x, mask):
    before = x._version
    x.mul_(2)
    x.mul_(2)
    y = x + 2
    y[mask] = 2
    return before, x._version, y._version


def read_version_of_a_result(x, mask):
    y = x + 2
    before = y._version
    y[mask] = 2
    return before, y._version


class Versions(unittest.TestCase):
    """How many writes are counted can be read by the caller."""

    def versions(self, function, requires_grad):
        seen = []
        for _ in range(3):
            x = torch.ones(3, requires_grad=requires_grad) * 1
            results = function(x, torch.tensor([True, False, True]))
            seen.append(
                [x._version]
                + [result._version for result in (results if isinstance(results, tuple) else (results,))]
            )
        return seen

    def test_are_eagers(self):
        for function in (put_twice, write_twice, view_and_write, only_counted):
            for requires_grad in (False, True):
                for options in (
                    {},
                    {"watched_calls": False},
                    {"keep_input_mutations": False, "watched_calls": False},
                ):
                    with self.subTest(
                        function=function.__name__, requires_grad=requires_grad, options=options
                    ):
                        self.assertEqual(
                            self.versions(tandem.compile(function, **options), requires_grad),
                            self.versions(function, requires_grad),
                        )

    def test_are_eagers_through_dynamo(self):
        for function in (put_twice, write_twice, view_and_write):
            with self.subTest(function.__name__):
                torch._dynamo.reset()
                self.assertEqual(
                    self.versions(torch.compile(function, backend="tandem"), False),
                    self.versions(function, False),
                )

    def test_that_the_function_reads_are_eagers(self):
        for options in ({}, {"watched_calls": False}):
            with self.subTest(options=options):
                x, mask = torch.ones(3), torch.tensor([True, False, True])
                function = tandem.compile(read_versions, **options)
                self.assertEqual(
                    [function(x, mask) for _ in range(5)], [(2 * k, 2 * k + 2, 1) for k in range(5)]
                )
                self.assertIn("version", tandem.explain(function, x, mask).eager_reason)

    def test_that_the_function_reads_are_eagers_through_dynamo(self):
        function = torch.compile(read_version_of_a_result, backend="tandem")
        self.assertEqual(
            [function(torch.ones(3), torch.tensor([True, False, True])) for _ in range(3)], [(0, 1)] * 3
        )


class Operators(unittest.TestCase):
    def test_a_number_is_copied(self):
        for given in (torch.zeros(2), torch.zeros(2, requires_grad=True) * 1):
            result = tandem.compile(lambda x: x.copy_(1))(given)
            self.assertEqual(result.tolist(), [1, 1])
            self.assertEqual(result.requires_grad, given.requires_grad)

    def test_one_without_a_derivative_formula(self):
        """Autograd sees what its kernel calls."""
        with torch.library._scoped_library("tandem_no_formula", "DEF") as library:
            library.define("triple(Tensor x) -> Tensor")
            library.impl("triple", lambda x: 3 * x, "CompositeExplicitAutograd")
            library.impl("triple", torch.empty_like, "Meta")

            def function(x):
                return torch.cos(torch.ops.tandem_no_formula.triple(torch.relu(x)))

            for compiled in (
                tandem.compile(function),
                tandem.compile(function, watched_calls=False),
                torch.compile(function, backend="tandem"),
            ):
                for _ in range(2):
                    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
                    compiled(x).sum().backward()
                    function(y).sum().backward()
                    self.assertTrue(torch.equal(x.grad, y.grad))
            before = tandem.counters()["ran_uncompiled"]
            tandem.compile(function)(torch.ones(2))  # nothing is differentiated
            self.assertEqual(tandem.counters()["ran_uncompiled"], before)

    def test_a_number_is_looked_for(self):
        for backend in ("eager", "debug"):
            function = tandem.compile(
                lambda t: torch.zeros(torch.isin(1, t).shape) + torch.isin(1, t), backend=backend
            )
            self.assertTrue(torch.equal(function(torch.tensor([1, 2])), torch.tensor(1.0)))

    def test_convolutions_of_one_channel(self):
        for kind in (torch.nn.Conv1d, torch.nn.ConvTranspose1d):
            convolution = kind(1, 4, 1)
            x = torch.randn(1, 5, 1).permute(0, 2, 1)
            compiled = tandem.compile(convolution, backend="debug")
            self.assertEqual(compiled(x).stride(), convolution(x).stride())

    def test_a_mark_for_the_profiler(self):
        def function(x):
            with torch.profiler.record_function("part"):
                return x.sin()

        x = torch.ones(3)
        results, counted = uncompiled(tandem.compile(function), x)
        self.assertEqual(counted, {"ran_uncompiled": 0, "promise_broken": 0})
        self.assertTrue(all(torch.equal(result, x.sin()) for result in results))

    def test_layers_that_are_never_dropped(self):
        """The number is drawn all the same."""

        def function(x):
            return x.cos() if torch.rand([]) < 0.0 or torch.rand([]) > 2 else x.sin() * torch.rand(3)

        x = torch.ones(3)
        torch.manual_seed(0)
        expected = [function(x) for _ in range(5)]
        torch.manual_seed(0)
        results, counted = uncompiled(tandem.compile(function), x)
        self.assertEqual(counted, {"ran_uncompiled": 0, "promise_broken": 0})
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(expected, results)))

    def test_layers_that_may_be_dropped(self):
        for bound in (0.5, 0.0):
            compare = torch.le if bound == 0 else torch.lt
            _, counted = uncompiled(
                tandem.compile(lambda x: x.cos() if compare(torch.rand([]), bound) else x.sin()),
                torch.ones(3),
            )
            self.assertEqual(counted["ran_uncompiled"], 5)

    def test_attention_in_a_checkpoint(self):
        def function(q):
            return checkpoint(lambda y: F.scaled_dot_product_attention(y, y, y), q, use_reentrant=False).sum()

        q = torch.randn(1, 2, 4, 8, requires_grad=True)
        function(q).backward()
        expected, q.grad = q.grad, None
        compiled = tandem.compile(function)
        _, counted = uncompiled(compiled, q)
        self.assertEqual(counted["ran_uncompiled"], 0)
        compiled(q).backward()
        self.assertTrue(torch.equal(q.grad, expected))

    def test_an_operator_in_the_place_of_one_that_has_gone(self):
        def first():
            with torch.library._scoped_library("tandem_corners", "DEF") as library:
                library.define("put_(Tensor(a!) to, Tensor what) -> ()")
                library.impl("put_", lambda to, what: None, "Meta")

                def put_(to, what):
                    to.copy_(what)

                library.impl("put_", put_, "CompositeExplicitAutograd")

                def function(x):
                    y = torch.zeros_like(x)
                    torch.ops.tandem_corners.put_(y, x)
                    return y

                self.assertEqual(tandem.compile(function)(torch.ones(2)).tolist(), [1, 1])
            del torch.ops.tandem_corners

        first()
        gc.collect()
        for k in range(4):
            operator = torch.library.custom_op(
                f"tandem_corners_{k}::copy",
                lambda x: x.clone(),
                mutates_args={},
                schema="(Tensor x) -> Tensor",
            )
            operator.register_fake(torch.empty_like)
            self.assertEqual(tandem.compile(lambda x: operator(x) + 1)(torch.ones(2)).tolist(), [2, 2])


class Nested(unittest.TestCase):
    def test_jagged_tensors_through_dynamo(self):
        function = torch.compile(lambda x: x * 2, backend="tandem")
        x = torch.nested.nested_tensor(
            [torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged
        ).requires_grad_()
        y = function(x)
        self.assertEqual(y.values().sum().item(), 36)
        y.values().sum().backward()
        self.assertEqual(x.grad.values().sum().item(), 36)


if __name__ == "__main__":
    unittest.main()
