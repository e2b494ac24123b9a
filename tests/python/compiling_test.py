"""torch.compiler.is_compiling() inside compiled programs, and programs whose libraries ask it."""

import threading
import unittest
import unittest.mock

import torch
from torch.optim.optimizer import _global_optimizer_pre_hooks
from torch.utils.checkpoint import checkpoint

import tandem


def looks_unless_compiled(x):
    if not torch.compiler.is_compiling() and x.sum().item() < 0:
        raise ValueError("negative")
    return x * 2


class IsCompiling(unittest.TestCase):
    def test_it_is_true_in_a_trace_and_false_behind_it(self):
        seen = []
        tandem.explain(lambda x: (seen.append(torch.compiler.is_compiling()), x * 2)[1], torch.ones(2))
        self.assertEqual(seen, [])  # a trace leaves nothing behind
        told = tandem.compile(lambda x: x * 2 if torch.compiler.is_compiling() else x * 3, must_compile=True)
        self.assertTrue(torch.equal(told(torch.ones(2)), torch.full((2,), 2.0)))
        self.assertFalse(torch.compiler.is_compiling())

    def test_a_program_that_fails_because_of_it_is_traced_without(self):
        def refuses(x):
            x.add_(1)
            if torch.compiler.is_compiling():
                raise NotImplementedError("not under a compiler")
            return x * 2

        for watched in (True, False):
            compiled, x = tandem.compile(refuses, must_compile=True, watched_calls=watched), torch.ones(2)
            for i in range(5):
                self.assertTrue(torch.equal(compiled(x), torch.full((2,), 2.0 * (i + 2))))
                self.assertTrue(torch.equal(x, torch.full((2,), i + 2.0)))

    def test_a_program_that_only_computes_gradients_where_it_is_not_compiled(self):
        def forces(x, w):
            if not torch.compiler.is_compiling():
                x.requires_grad_(True)
            return torch.autograd.grad((x * w).sin().sum(), [x], create_graph=True)[0]

        for watched in (True, False):
            tandem.reset()
            compiled, w = (
                tandem.compile(forces, watched_calls=watched),
                torch.linspace(1, 2, 3, requires_grad=True),
            )
            for i in range(5):
                x, y = torch.full((3,), i + 1.0), torch.full((3,), i + 1.0)
                got, expected = compiled(x, w), forces(y, w)
                self.assertTrue(torch.equal(got, expected))
                self.assertTrue(
                    torch.equal(
                        torch.autograd.grad(got.sum(), w)[0], torch.autograd.grad(expected.sum(), w)[0]
                    )
                )
                self.assertTrue(x.requires_grad)
            self.assertEqual(tandem.counters().get("ran_uncompiled", 0), 0)
            self.assertEqual(tandem.counters().get("promise_broken", 0), 0)

    def test_a_program_that_fails_in_any_case_fails_with_its_own_error(self):
        def fails(x):
            raise LookupError(torch.compiler.is_compiling())

        for options in ({}, {"must_compile": True}):
            with self.assertRaisesRegex(LookupError, "False"):
                tandem.compile(fails, **options)(torch.ones(2))

    def test_it_is_true_in_a_recomputation_where_it_was_in_the_forward(self):
        def part(y):
            return (y.sin() * 2).cos() if torch.compiler.is_compiling() else y.sin() * 2 + 1

        def program(x):
            return checkpoint(part, x, use_reentrant=False)

        def told(x):
            return (x.sin() * 2).cos()

        for watched in (True, False):
            tandem.reset()
            compiled = tandem.compile(program, watched_calls=watched)
            for _ in range(5):
                x, y = (
                    torch.linspace(0, 1, 3, requires_grad=True),
                    torch.linspace(0, 1, 3, requires_grad=True),
                )
                got, expected = compiled(x), told(y)
                self.assertTrue(torch.equal(got, expected))
                got.sum().backward()
                expected.sum().backward()
                self.assertTrue(torch.equal(x.grad, y.grad))
            self.assertEqual(tandem.counters().get("ran_uncompiled", 0), 0)
            self.assertEqual(tandem.counters().get("promise_broken", 0), 0)
        self.assertFalse(torch.compiler.is_compiling())

    def test_it_is_false_where_the_original_runs(self):
        seen = []
        compiled = tandem.compile(
            lambda x: (seen.append(torch.compiler.is_compiling()), x * x.sum().item())[1]
        )
        compiled(torch.ones(2))
        self.assertEqual(seen, [False])

    def test_what_was_set_before_is_set_again(self):
        with unittest.mock.patch.object(torch.compiler, "_is_compiling_flag", True):
            tandem.compile(looks_unless_compiled)(torch.ones(2))
            self.assertTrue(torch.compiler.is_compiling())
        self.assertFalse(torch.compiler.is_compiling())

    def test_a_program_that_asks_takes_the_way_that_can_be_traced(self):
        compiled, x = tandem.compile(looks_unless_compiled, must_compile=True), torch.ones(3)
        self.assertTrue(torch.equal(compiled(x), x * 2))

    def test_threads_that_trace_at_the_same_time(self):
        def work():
            for size in range(1, 12):
                tandem.compile(looks_unless_compiled)(torch.ones(size))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertFalse(torch.compiler.is_compiling())

    def test_optimisers_step_as_in_eager(self):
        def trained(compile, kind, **options):
            weight = torch.nn.Parameter(torch.linspace(-1, 1, 7))
            optimiser = kind([weight], lr=0.1, **options)

            @compile
            def step():
                weight.grad.copy_(weight.detach().sin() * 0.3)
                optimiser.step()

            for _ in range(6):
                weight.grad = torch.zeros(7) if weight.grad is None else weight.grad
                step()
            return weight.detach()

        for kind, options in (
            (torch.optim.Adam, {}),
            (torch.optim.AdamW, {"foreach": True}),
            (torch.optim.NAdam, {}),
            (torch.optim.SGD, {"momentum": 0.9}),
        ):
            with self.subTest(kind.__name__):
                self.assertTrue(
                    torch.equal(
                        trained(tandem.compile, kind, **options), trained(lambda f: f, kind, **options)
                    )
                )
        self.assertFalse(torch.compiler.is_compiling())

    def test_an_optimiser_that_fails_leaves_nothing_behind(self):
        class Failing(torch.optim.SGD):
            def step(self, closure=None):
                raise LookupError(torch.compiler.is_compiling())

        optimiser = Failing([torch.nn.Parameter(torch.ones(1))])
        with self.assertRaisesRegex(LookupError, "False"):
            tandem.compile(lambda x: (optimiser.step(), x + 1), must_compile=True)(torch.ones(2))
        self.assertFalse(torch.compiler.is_compiling())
        self.assertEqual(len(_global_optimizer_pre_hooks), 0)


if __name__ == "__main__":
    unittest.main()
