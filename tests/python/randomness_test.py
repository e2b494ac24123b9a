"""Numbers from Python's and NumPy's generators are drawn at every call; torch's may be counter-based."""

import random
import unittest

import numpy
import torch
import torch.utils.checkpoint

import tandem
import tandem.dynamo

own = random.Random(7)
modern = numpy.random.default_rng(7)


class Holder:
    def __init__(self):
        self.generators = {"old": numpy.random.RandomState(7)}


holder = Holder()


class Randomness(unittest.TestCase):
    def draws(self, function, compile):
        random.seed(0), numpy.random.seed(0), own.seed(0)
        modern.bit_generator.state = numpy.random.default_rng(5).bit_generator.state
        holder.generators["old"].seed(5)
        compiled = compile(function)
        return [compiled(torch.ones(2))[0].item() for _ in range(5)]

    def test_numbers_are_drawn_at_every_call(self):
        for function, words in (
            (lambda x: x * random.random(), "Python's random module"),
            (lambda x: x * float(numpy.random.rand()), "numpy.random"),
            (lambda x: x * own.gauss(0, 1), "Random of Python's random module"),
            (lambda x: x * modern.random(), "a generator of numpy.random's"),
            (lambda x: x * holder.generators["old"].rand(), "a generator of numpy.random's"),
            (lambda x: x * 2 if random.random() < 0.5 else x * 3, "Python's random module"),
        ):
            with self.subTest(words):
                self.assertEqual(self.draws(function, tandem.compile), self.draws(function, lambda f: f))
                self.assertIn(words, tandem.explain(function, torch.ones(2)).eager_reason)

    def test_a_refused_trace_draws_nothing(self):
        function = lambda x: x * random.random() * x.sum().item()  # noqa: E731
        self.assertEqual(self.draws(function, tandem.compile), self.draws(function, lambda f: f))

    def test_compiling_draws_nothing(self):
        random.seed(3), numpy.random.seed(3)
        want = random.random(), numpy.random.rand()
        random.seed(3), numpy.random.seed(3)
        tandem.compile(lambda x: x * 2)(torch.ones(2))
        self.assertEqual((random.random(), numpy.random.rand()), want)

    def test_functions_that_draw_nothing_are_compiled(self):
        reads = lambda x: x * len(holder.generators) + (0 if own is None else 1)  # noqa: E731
        self.assertEqual(tandem.explain(reads, torch.ones(2)).eager_reason, "")


class CounterNumbers(unittest.TestCase):
    """`random="counter"`: functions of a seed that is drawn once a call."""

    def trained(self, function, seed=3):
        x = torch.arange(1.0, 65.0, requires_grad=True)
        torch.manual_seed(seed)
        y = function(x)
        y.sum().backward()
        return y.detach(), x.grad

    def test_the_seed_decides(self):
        noisy = lambda x: torch.nn.functional.dropout(x, 0.25) * torch.rand_like(x)  # noqa: E731
        function = tandem.compile(noisy, random="counter")
        one, again, other = self.trained(function), self.trained(function), self.trained(function, seed=4)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(one, again)))
        self.assertFalse(any(torch.equal(a, b) for a, b in zip(one, other)))

    def test_a_checkpoint_has_those_of_the_plain_function(self):
        def part(x):
            return torch.nn.functional.dropout(x.sin(), 0.5).exp() * torch.nn.functional.dropout(x, 0.25)

        def checkpointed(x):
            return torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False) * torch.rand_like(x)

        plain = lambda x: part(x) * torch.rand_like(x)  # noqa: E731
        want = self.trained(tandem.compile(plain, random="counter", must_compile=True))
        for compile in (
            lambda f: tandem.compile(f, random="counter", must_compile=True),
            lambda f: torch.compile(f, backend=tandem.dynamo.backend, options={"random": "counter"}),
        ):
            got = self.trained(compile(checkpointed))
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(got, want)))

    def test_other_words_are_refused(self):
        with self.assertRaisesRegex(tandem.Error, "Options::random"):
            tandem.compile(lambda x: x, random="philox")


if __name__ == "__main__":
    unittest.main()
