"""Checkpoints with random numbers: the recomputation draws what the forward drew, and the generator
ends where eager's does. What is compiled of them is found again in the cache."""

import contextlib
import os
import tempfile
import unittest
from typing import Any, Callable
from unittest import mock

import tandem
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
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


class BesideEager(unittest.TestCase):
    def setUp(self) -> None:
        self.x = torch.randn(8, requires_grad=True)

    def expect_eagers(self, fast: Program, program: Program, **options: Any) -> None:
        for call in range(4):
            want, got = results_of(program, self.x, **options), results_of(fast, self.x, **options)
            for place, (a, b) in enumerate(zip(want, got)):
                self.assertTrue(torch.equal(a, b), f"call {call}, result {place}")


class Checkpoints(BesideEager):
    def test_programs_compile_and_draw_as_eager(self) -> None:
        for program in (one, several_and_draws_between, nested):
            with self.subTest(program.__name__):
                run = lambda x, program=program: program(x, False)  # noqa: E731
                fast = tandem.compile(run)
                self.expect_eagers(fast, run)
                self.assertEqual(tandem.explain(fast, self.x).eager_reason, "")

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


LAYERS = [torch.nn.Linear(8, 8) for _ in range(2)]


def through_layers(x: torch.Tensor) -> torch.Tensor:
    for layer in LAYERS:
        x = checkpoint(lambda y, layer=layer: F.dropout(layer(y).sin(), 0.2), x, use_reentrant=False)
    return x


def through_the_last_layer_again(x: torch.Tensor) -> torch.Tensor:
    """What the backward calls finds the variable as the loop has left it."""
    for layer in LAYERS:
        x = checkpoint(lambda y: F.dropout(layer(y).sin(), 0.2), x, use_reentrant=False)
    return x


def with_other_numbers(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(drop_twice, x, use_reentrant=False, preserve_rng_state=False).cos()


class OwnHook(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self, frame: Any) -> None:
        super().__init__(lambda tensor: tensor * 2, lambda tensor: tensor)


class Cached(BesideEager):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = tandem.CacheOptions(directory=folder.name)
        self.enterContext(mock.patch.dict(os.environ, {"TANDEM_CACHE": "on"}))

    def compiled_anew(self, program: Program) -> tandem.Explanation:
        tandem.reset()
        fast = tandem.compile(program, cache=self.cache)
        self.expect_eagers(fast, program)
        return tandem.explain(fast, self.x)

    def test_what_was_compiled_is_found_again(self) -> None:
        programs = [lambda x, p=p: p(x, False) for p in (one, several_and_draws_between, nested)]
        for program in (*programs, through_layers, with_other_numbers):
            first, second = self.compiled_anew(program), self.compiled_anew(program)
            self.assertEqual((first.cache_state, second.cache_state), ("miss", "hit"))
            self.assertEqual(first.saved_bytes, second.saved_bytes)

    def test_what_is_kept_is_what_eager_keeps(self) -> None:
        self.compiled_anew(through_layers)
        states = 2 * torch.get_rng_state().numel()
        self.assertEqual(self.compiled_anew(through_layers).saved_bytes, states + self.x.nbytes)

    def test_what_a_backward_calls_again_is_in_the_key(self) -> None:
        for _ in range(2):
            keys = [self.compiled_anew(p).key for p in (through_layers, through_the_last_layer_again)]
            self.assertNotEqual(*keys)

    def test_gradients_of_gradients_are_found_again(self) -> None:
        for state in ("miss", "hit"):
            tandem.reset()
            fast = tandem.compile(through_layers, cache=self.cache)
            self.expect_eagers(fast, through_layers, create_graph=True)
            self.assertEqual(tandem.explain(fast, self.x).cache_state, state)

    def test_what_may_not_be_torchs_own_is_not_cached(self) -> None:
        def contexts() -> tuple[contextlib.AbstractContextManager, ...]:
            return contextlib.nullcontext(), torch.enable_grad()

        for options in ({"determinism_check": "none"}, {"context_fn": contexts}, {"debug": True}):
            with self.subTest(**options):
                run = lambda x: checkpoint(drop_twice, x, use_reentrant=False, **options).cos()  # noqa: E731
                self.assertEqual(self.compiled_anew(run).cache_state, "bypass")
        run = lambda x: one(x, False)  # noqa: E731
        with mock.patch.object(torch.utils.checkpoint, "_checkpoint_hook", OwnHook):
            self.assertEqual(self.compiled_anew(run).cache_state, "bypass")
        self.assertEqual(self.compiled_anew(run).cache_state, "miss")


if __name__ == "__main__":
    unittest.main()
