"""torch.compiler.is_compiling() inside compiled programs, and programs whose libraries ask it."""

import threading
import unittest
import unittest.mock

import torch
from torch.optim.optimizer import _global_optimizer_pre_hooks

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
        with self.assertRaisesRegex(LookupError, "True"):
            tandem.compile(self.tell_by_error, must_compile=True)(torch.ones(2))
        self.assertFalse(torch.compiler.is_compiling())

    @staticmethod
    def tell_by_error(x):
        raise LookupError(torch.compiler.is_compiling())

    def test_a_program_that_fails_because_of_it_runs_as_it_is(self):
        def refuses(x):
            x.add_(1)
            if torch.compiler.is_compiling():
                raise NotImplementedError("not under a compiler")
            return x * 2

        x = torch.ones(2)
        self.assertTrue(torch.equal(tandem.compile(refuses)(x), torch.full((2,), 4.0)))
        self.assertTrue(torch.equal(x, torch.full((2,), 2.0)))

    def test_it_is_false_where_the_original_runs(self):
        seen = []
        compiled = tandem.compile(lambda x: (seen.append(torch.compiler.is_compiling()), x * x.sum().item())[1])
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

        for kind, options in ((torch.optim.Adam, {}), (torch.optim.AdamW, {"foreach": True}), (torch.optim.NAdam, {}), (torch.optim.SGD, {"momentum": 0.9})):
            with self.subTest(kind.__name__):
                self.assertTrue(torch.equal(trained(tandem.compile, kind, **options), trained(lambda f: f, kind, **options)))
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
