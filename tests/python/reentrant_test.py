"""The reentrant form of torch.utils.checkpoint, whose backward calls the function again and `backward()` in
the middle of another one."""

import os
import tempfile
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

import tandem
import torch
import torch.nn.functional as F
from checkpoint_test import BesideEager, Program, nested, one, several_and_draws_between
from torch.utils.checkpoint import checkpoint

FIRST, SECOND = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)


def in_turn(x: torch.Tensor) -> torch.Tensor:
    """Each parameter in one checkpoint, an input of it read outside too."""
    y = checkpoint(lambda y: F.dropout(FIRST(y).sin(), 0.2), x.exp(), use_reentrant=True)
    return checkpoint(lambda y: SECOND(y) * SECOND.bias, y, use_reentrant=True) + y * x


def two_results(x: torch.Tensor) -> torch.Tensor:
    """Nobody reads the second one, whose gradient is zeros then."""
    return checkpoint(lambda y: (FIRST(y), SECOND(y)), x.sin(), use_reentrant=True)[0].tanh()


def of_a_parameter(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(lambda y, w: (y @ w).tanh(), x, FIRST.weight, use_reentrant=True) * SECOND.bias


def without_gradient(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(FIRST, x.detach(), use_reentrant=True) * x


def shared(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(FIRST, checkpoint(FIRST, x, use_reentrant=True), use_reentrant=True)


def read_outside(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(FIRST, x, use_reentrant=True) * FIRST.bias


def with_a_history(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    return checkpoint(lambda z: z + y, x, use_reentrant=True)


def of_what_it_was_given(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(lambda y: y, x.exp(), use_reentrant=True) * 2


def constant(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(lambda y: torch.ones(8), x, use_reentrant=True) * 2


def of_two(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return checkpoint(lambda y: y * z, x, use_reentrant=True)


COMPILED = (in_turn, two_results, of_a_parameter, without_gradient)
AS_THEY_ARE = (shared, read_outside, with_a_history, of_what_it_was_given, constant)


class Reentrant(BesideEager):
    def setUp(self) -> None:
        super().setUp()
        self.leaves = [self.x, *FIRST.parameters(), *SECOND.parameters()]

    def outcome(self, run: Program, backward: Callable[[torch.Tensor], Any], gathered: bool) -> list[Any]:
        torch.manual_seed(3)
        for leaf in self.leaves:
            leaf.grad = leaf.detach() / 3 if gathered else None
        y = run(self.x)
        try:
            found = backward(y)
        except RuntimeError as error:
            return [y.detach(), str(error)]
        grads = [leaf.grad for leaf in self.leaves]
        return [y.detach(), torch.tensor(y.requires_grad), *(found or []), *grads, torch.get_rng_state()]

    def expect_same(self, fast: Program, program: Program, backward: Callable[[torch.Tensor], Any]) -> None:
        for call in range(4):
            want = self.outcome(program, backward, call % 2 == 1)
            for a, b in zip(want, self.outcome(fast, backward, call % 2 == 1), strict=True):
                same = torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
                self.assertTrue(same, f"{program.__name__}, call {call}: {a}, {b}")

    def test_draw_as_eager(self) -> None:
        for program in (one, several_and_draws_between, nested):
            with self.subTest(program.__name__):
                run = lambda x, program=program: program(x, True)  # noqa: E731
                fast = tandem.compile(run)
                self.expect_eagers(fast, run)
                reason = tandem.explain(fast, self.x).eager_reason
                self.assertEqual(reason == "", program is not nested, reason)

    def test_add_to_gradients_as_eager(self) -> None:
        for program in (*COMPILED, *AS_THEY_ARE):
            with self.subTest(program.__name__):
                fast = tandem.compile(program)
                self.expect_same(fast, program, lambda y: y.cos().sum().backward())
                reason = tandem.explain(fast, self.x).eager_reason
                self.assertEqual(reason == "", program in COMPILED, reason)

    def test_what_the_caller_computed_is_no_leaf(self) -> None:
        fast = tandem.compile(of_two)
        explained = tandem.explain(fast, self.x, self.x.exp())
        self.assertIn("with a history", explained.eager_reason)

        def around(x: torch.Tensor) -> torch.Tensor:
            return of_two(x, x.exp())

        self.expect_same(lambda x: fast(x, x.exp()), around, lambda y: y.cos().sum().backward())

    def test_refuse_what_eager_refuses(self) -> None:
        def twice(y: torch.Tensor) -> None:
            y.sum().backward()
            y.cos().sum().backward()

        def of(*leaves: torch.Tensor) -> Callable[[torch.Tensor], Any]:
            return lambda y: torch.autograd.grad(y.sum(), leaves, allow_unused=True)

        weight, bias = FIRST.weight, SECOND.bias
        backwards = [twice, of(self.x), of(weight), of(bias), of(self.x, weight), of(weight, bias)]
        backwards.append(lambda y: y.sum().backward(inputs=[self.x]))
        for program in (*COMPILED, *AS_THEY_ARE):
            for number, backward in enumerate(backwards):
                with self.subTest(program.__name__, backward=number):
                    self.expect_same(tandem.compile(program), program, backward)

    def test_keep_what_eager_keeps(self) -> None:
        fast = tandem.compile(lambda x: checkpoint(lambda y: FIRST(y).sin().exp(), x * 2, use_reentrant=True))
        self.assertEqual(tandem.explain(fast, self.x).saved_bytes, self.x.nbytes)

    def test_are_found_in_the_cache(self) -> None:
        cache_on = mock.patch.dict(os.environ, {"TANDEM_CACHE": "on"})
        with cache_on, tempfile.TemporaryDirectory() as folder:
            for state in ("miss", "hit"):
                for program in COMPILED[:3]:
                    tandem.reset()
                    fast = tandem.compile(program, cache=tandem.CacheOptions(directory=folder))
                    self.expect_same(fast, program, lambda y: y.cos().sum().backward())
                    self.assertEqual(tandem.explain(fast, self.x).cache_state, state)

    def test_have_no_gradients_of_gradients(self) -> None:
        fast = tandem.compile(in_turn)
        with self.assertRaisesRegex(tandem.UnsupportedError, "reentrant checkpoint"):
            fast(self.x).sum().backward(create_graph=True)


if __name__ == "__main__":
    unittest.main()
