"""Signatures that do not come again are not compiled: what changes at every call costs no more than eager,
and is named once."""

import unittest

import torch
from engine_warnings import engine_warnings

import tandem
import tandem.dynamo

STEPS, AT_ONCE = 100, 3


class Annealed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.beta, self.steps = torch.nn.Linear(4, 4), 0.0, 0

    def forward(self, x):
        h = self.encode(x)
        return (h - x).square().mean() + self.beta * h.square().mean()


class Counted(Annealed):
    def forward(self, x):
        self.steps += 1
        return super().forward(x)


class Averaged(Annealed):
    def __init__(self):
        super().__init__()
        self.register_buffer("average", torch.zeros(4))

    def forward(self, x):
        h = self.encode(x)
        with torch.no_grad():
            self.average.mul_(0.9).add_(h.mean(0), alpha=0.1)
        return (h - self.average).square().mean()


def anneal(model, step):
    model.beta = step / STEPS


class Novelty(unittest.TestCase):
    def setUp(self):
        tandem.reset()
        torch._dynamo.reset()
        self.x = torch.linspace(-1, 1, 12).reshape(3, 4)

    def trained(self, compile, kind, change):
        torch.manual_seed(0)
        model = kind()
        step, optimiser = compile(model), torch.optim.SGD(model.parameters(), 0.1)
        for i in range(STEPS):
            change(model, i)
            optimiser.zero_grad()
            step(self.x).backward()
            optimiser.step()
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    def same(self, kind, change, traces, uncompiled, compile=tandem.compile):
        with engine_warnings() as said:
            self.assertTrue(
                torch.equal(
                    self.trained(compile, kind, change), self.trained(lambda model: model, kind, change)
                )
            )
        self.assertLessEqual(tandem.counters()["trace"], traces)
        self.assertGreaterEqual(tandem.counters()["ran_uncompiled"], uncompiled)
        return said

    def test_an_attribute_that_changes_at_every_step(self):
        said = self.same(Annealed, anneal, AT_ONCE, STEPS - AT_ONCE)
        self.assertEqual(len(said), 1, said)
        self.assertIn(
            "Annealed: its calls keep running uncompiled, since attribute beta of class Annealed", said[0]
        )

    def test_a_counter_inside(self):
        said = self.same(Counted, lambda model, step: None, AT_ONCE, STEPS - AT_ONCE)
        self.assertIn("attribute steps of class Counted", said[0])

    def test_what_does_not_change_is_compiled_at_once(self):
        for kind in (Annealed, Averaged):
            tandem.reset()
            self.assertEqual(self.same(kind, lambda model, step: None, 1, 0), [])
            self.assertEqual(tandem.counters()["ran_uncompiled"], 0)

    def test_an_attribute_that_changes_under_dynamo(self):
        said = self.same(
            Annealed,
            anneal,
            AT_ONCE + 1,
            STEPS - AT_ONCE - 2,
            lambda model: torch.compile(model, backend=tandem.dynamo.backend),
        )
        self.assertIn("beta", said[0])

    def test_arguments_variables_and_globals_are_named(self):
        changing = 0

        def captured(x):
            return x * changing

        def given(x, *, scale, shift):
            return x * scale[0] + shift

        by_argument, by_variable = tandem.compile(given), tandem.compile(captured)
        with engine_warnings() as said:
            for changing in range(STEPS):
                self.assertTrue(
                    torch.equal(by_argument(self.x, scale=[changing], shift=1), self.x * changing + 1)
                )
                self.assertTrue(torch.equal(by_variable(self.x), self.x * changing))

        self.assertEqual(len(said), 2, said)
        self.assertIn("argument scale", said[0])
        self.assertIn("the variable changing", said[1])

    def test_values_that_come_again_are_compiled(self):
        function = tandem.compile(lambda x, n: x * n)
        for _ in range(20):
            for n in range(8):
                self.assertTrue(torch.equal(function(self.x, n), self.x * n))
        self.assertEqual(tandem.counters()["trace"], 8)

    def test_must_compile_compiles_all(self):
        function = tandem.compile(lambda x, n: x * n, must_compile=True)
        for n in range(8):
            function(self.x, n)
        self.assertEqual(tandem.counters()["trace"], 8)


if __name__ == "__main__":
    unittest.main()
