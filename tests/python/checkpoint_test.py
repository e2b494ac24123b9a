"""Checkpoints with random numbers: the recomputation draws what the forward drew, and the generator
ends where eager's does."""

import unittest
from typing import Any, Callable

import tandem
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

Program = Callable[..., torch.Tensor]


def drop_twice(x: torch.Tensor) -> torch.Tensor:
    y = F.dropout(x.sin(), 0.5)
    return (y.exp() + torch.rand_like(y)) * F.dropout(y, 0.3)


def one(x: torch.Tensor, reentrant: bool) -> torch.Tensor:
    return checkpoint(drop_twice, x, use_reentrant=reentrant).cos()


def several_and_draws_between(x: torch.Tensor, reentrant: bool) -> torch.Tensor:
    y = checkpoint(drop_twice, F.dropout(x, 0.1), use_reentrant=reentrant)
    y = y * torch.randn(8)
    return checkpoint(drop_twice, y.tanh(), use_reentrant=reentrant) + torch.rand(8)


def nested(x: torch.Tensor, reentrant: bool) -> torch.Tensor:
    def outer(y: torch.Tensor) -> torch.Tensor:
        return F.dropout(checkpoint(drop_twice, y.sin(), use_reentrant=reentrant), 0.2).sin()

    return checkpoint(outer, x, use_reentrant=reentrant)


def forked(x: torch.Tensor, reentrant: bool) -> torch.Tensor:
    """The same numbers twice in the forward itself."""
    with torch.random.fork_rng():
        first = F.dropout(x, 0.5) + F.dropout(x.sin(), 0.5)
    return first * (F.dropout(x, 0.5) + F.dropout(x.sin(), 0.5))


def results_of(run: Program, x: torch.Tensor, **options: Any) -> list[torch.Tensor]:
    torch.manual_seed(3)
    y = run(x)
    behind_forward = torch.get_rng_state()
    torch.rand(3)  # the caller draws too before he asks for gradients
    x.grad = None
    y.sum().backward(**options)  # reentrant checkpoints refuse to be asked for some gradients
    return [y.detach(), x.grad.detach(), behind_forward, torch.get_rng_state()]


class Checkpoints(unittest.TestCase):
    def setUp(self) -> None:
        self.x = torch.randn(8, requires_grad=True)

    def expect_eagers(self, fast: Program, program: Program, **options: Any) -> None:
        for call in range(4):
            want, got = results_of(program, self.x, **options), results_of(fast, self.x, **options)
            for place, (a, b) in enumerate(zip(want, got)):
                self.assertTrue(torch.equal(a, b), f"call {call}, result {place}")

    def test_programs_compile_and_draw_as_eager(self) -> None:
        for program in (one, several_and_draws_between, nested):
            with self.subTest(program.__name__):
                run = lambda x, program=program: program(x, False)  # noqa: E731
                fast = tandem.compile(run)
                self.expect_eagers(fast, run)
                self.assertEqual(tandem.explain(fast, self.x).eager_reason, "")

    def test_reentrant_ones_are_right(self) -> None:
        for program in (one, several_and_draws_between, nested):
            with self.subTest(program.__name__):
                run = lambda x, program=program: program(x, True)  # noqa: E731
                self.expect_eagers(tandem.compile(run), run)

    def test_through_dynamo(self) -> None:
        for program in (one, several_and_draws_between, nested):
            with self.subTest(program.__name__):
                run = lambda x, program=program: program(x, False)  # noqa: E731
                before = tandem.counters().get("compile_backward", 0)
                self.expect_eagers(torch.compile(run, backend="tandem"), run)
                self.assertGreater(tandem.counters().get("compile_backward", 0), before)

    def test_gradients_of_gradients(self) -> None:
        run = lambda x: one(x, False)  # noqa: E731
        self.expect_eagers(tandem.compile(run), run, create_graph=True)

    def test_a_fork_that_the_forward_draws_again_behind_is_left_to_eager(self) -> None:
        run = lambda x: forked(x, False)  # noqa: E731
        fast = tandem.compile(run)
        self.expect_eagers(fast, run)
        self.assertIn("sets its state", tandem.explain(fast, self.x).eager_reason)

    def test_a_state_from_elsewhere_is_left_to_eager(self) -> None:
        state = torch.get_rng_state()

        def run(x: torch.Tensor) -> torch.Tensor:
            torch.set_rng_state(state)
            return F.dropout(x, 0.5)

        fast = tandem.compile(run)
        self.expect_eagers(fast, run)
        self.assertIn("seeds", tandem.explain(fast, self.x).eager_reason)

    def test_a_state_that_is_not_put_back_is_left_to_eager(self) -> None:
        def run(x: torch.Tensor) -> torch.Tensor:
            state = torch.get_rng_state()
            y = F.dropout(x, 0.5)
            torch.set_rng_state(state)
            return y * F.dropout(x, 0.5)

        fast = tandem.compile(run)
        self.expect_eagers(fast, run)
        self.assertIn("seeds", tandem.explain(fast, self.x).eager_reason)


if __name__ == "__main__":
    unittest.main()
