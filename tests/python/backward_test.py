"""backward() inside a compiled function: gradients of captured leaves, bit for bit as in eager."""

import unittest

import torch

import tandem


class Backward(unittest.TestCase):
    def setUp(self):
        tandem.reset()

    def expect_gradients(self, program, calls=5):
        """`program` makes a function of two leaves; what it returns and the gradients
        it leaves are compared."""

        def run(compile):
            w, v = torch.nn.Parameter(torch.linspace(-1, 1, 4)), torch.nn.Parameter(torch.linspace(1, 2, 4))
            call, found = compile(program(w, v)), []
            for i in range(calls):
                out = call(torch.full((4,), float(i + 1)))
                found += [
                    t.detach().clone() if t is not None else torch.zeros(0) for t in (out, w.grad, v.grad)
                ]
            return found

        expected = run(lambda f: f)
        for watched in (True, False):
            with self.subTest(watched=watched):
                got = run(
                    lambda f, watched=watched: tandem.compile(f, watched_calls=watched, must_compile=True)
                )
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(expected, got, strict=True)))
        self.assertEqual(tandem.counters().get("promise_broken", 0), 0)

    def test_gradients_gather_in_captured_leaves(self):
        def program(w, v):
            def f(x):
                loss = (w * x).sin().sum() + (v + w).exp().sum()
                loss.backward()
                return loss.detach()

            return f

        self.expect_gradients(program)

    def test_the_gradient_is_returned_too(self):
        def program(w, v):
            def f(x):
                w.grad = None
                (w * x * v).sum().backward()
                return w.grad

            return f

        self.expect_gradients(program)
        w = torch.nn.Parameter(torch.ones(4))
        self.assertIs(tandem.compile(program(w, torch.ones(4)), must_compile=True)(torch.ones(4)), w.grad)

    def test_one_gradient_for_two_leaves(self):
        def program(w, v):
            def f(x):
                w.grad = v.grad = None
                ((w + v) * x).sin().sum().backward()
                w.grad.mul_(2)
                return v.grad

            return f

        self.expect_gradients(program)

    def test_some_leaves_only(self):
        def program(w, v):
            def f(x):
                loss = (w * x * v).sin().sum()
                loss.backward(inputs=[v])
                return loss.detach()

            return f

        self.expect_gradients(program)

    def test_gradients_that_are_cleared(self):
        def program(w, v):
            def f(x):
                (w * x * v).sum().backward()
                w.grad = None
                return x * 2

            return f

        self.expect_gradients(program)

    def test_backward_twice(self):
        def program(w, v):
            def f(x):
                loss = (w * x * v).sin().sum()
                loss.backward(retain_graph=True)
                (2 * loss).backward()
                return loss.detach()

            return f

        self.expect_gradients(program)

    def test_a_hook_on_the_leaf(self):
        def program(w, v):
            w.register_hook(lambda g: g * 3)

            def f(x):
                loss = (w * x * v).sin().sum()
                loss.backward()
                return loss.detach()

            return f

        self.expect_gradients(program)

    def test_explaining_leaves_gradients_alone(self):
        w = torch.nn.Parameter(torch.ones(3))

        def f(x):
            w.grad = None
            (w * x).sum().backward()

        w.grad = gradient = torch.ones(3)
        self.assertEqual(tandem.explain(f, torch.ones(3)).eager_reason, "")
        self.assertIs(w.grad, gradient)

    def test_a_second_backward_of_what_is_returned_fails_as_in_eager(self):
        w = torch.nn.Parameter(torch.ones(3))

        @tandem.compile
        def f(x):
            loss = (w * x).sin().sum()
            loss.backward()
            return loss

        for _ in range(3):
            loss = f(torch.ones(3))
            with self.assertRaisesRegex(RuntimeError, "second time"):
                loss.backward()
        self.assertEqual(tandem.counters().get("ran_uncompiled", 0), 0)


if __name__ == "__main__":
    unittest.main()
