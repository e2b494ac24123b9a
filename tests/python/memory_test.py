"""What a program says about what it keeps: checkpoints, marks, partitioners and cost models."""

import os
import tempfile
import unittest
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import tandem
import torch
import torch.nn.functional as F
import torch.utils.checkpoint

Program = Callable[[torch.Tensor], torch.Tensor]

ROOM = 32 * 64 * 4
STATE = torch.get_rng_state().numel()
PARTITIONERS = ("default", "min_cut")


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.dropout(F.gelu(self.up(x)), 0.1))


def calls(graph: tandem.Graph, name: str) -> int:
    return sum(node.op == name for node in graph.nodes)


class Memory(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        self.x = torch.randn(32, 64, requires_grad=True)

    def results_of(self, run: Program, leaves: Sequence[torch.Tensor], twice: bool) -> list[Any]:
        torch.manual_seed(3)
        y = run(self.x)
        behind = torch.get_rng_state()
        torch.rand(3)  # the caller draws too before he asks for gradients
        leaves = [self.x, *leaves]
        first = torch.autograd.grad(y.sin().sum(), leaves, create_graph=twice)
        found = [y.detach(), behind, *(g.detach() for g in first), torch.get_rng_state()]
        if twice:
            found += torch.autograd.grad(sum(g.square().sum() for g in first), leaves, allow_unused=True)
        return found

    def expect_same(
        self, got: Program, want: Program, leaves: Sequence[torch.Tensor] = (), twice: bool = False
    ) -> None:
        for _ in range(3):
            pairs = zip(
                self.results_of(got, leaves, twice), self.results_of(want, leaves, twice), strict=True
            )
            for place, (a, b) in enumerate(pairs):
                self.assertTrue(a is b is None or torch.equal(a, b), f"result {place}")


class Checkpoints(Memory):
    def test_are_those_of_the_plain_function_and_keep_what_eager_keeps(self) -> None:
        first, second = Block(), Block()
        leaves = [*first.parameters(), *second.parameters()]

        def plain(x: torch.Tensor) -> torch.Tensor:
            return second(first(x).tanh())

        def program(x: torch.Tensor) -> torch.Tensor:
            return tandem.checkpoint(second, tandem.checkpoint(first, x).tanh())

        self.expect_same(program, plain, leaves, twice=True)
        for partitioner in PARTITIONERS:
            with self.subTest(partitioner):
                fast = tandem.compile(program, partitioner=partitioner)
                self.expect_same(fast, plain, leaves)
                explained = tandem.explain(fast, self.x)
                self.assertEqual((explained.eager_reason, explained.saved_bytes), ("", ROOM + 2 * STATE))
                self.assertGreater(tandem.explain(plain, self.x).saved_bytes, 4 * ROOM)

    def test_take_keywords_and_the_options_of_torchs(self) -> None:
        def scaled(x: torch.Tensor, *, factor: float) -> torch.Tensor:
            return (x * factor).exp()

        fast = tandem.compile(lambda x: tandem.checkpoint(scaled, x, factor=0.5, preserve_rng_state=False))
        self.expect_same(fast, lambda x: scaled(x, factor=0.5))

    def test_are_no_others_than_torchs(self) -> None:
        block = Block()
        run = torch.utils.checkpoint.checkpoint
        for partitioner in PARTITIONERS:
            own = tandem.compile(lambda x: tandem.checkpoint(block, x).sum(), partitioner=partitioner)
            torchs = tandem.compile(
                lambda x: run(block, x, use_reentrant=False).sum(), partitioner=partitioner
            )
            self.assertEqual(
                tandem.explain(own, self.x).saved_bytes, tandem.explain(torchs, self.x).saved_bytes
            )


class Marks(Memory):
    def test_outside_of_a_trace_are_the_tensor_itself(self) -> None:
        self.assertIs(tandem.must_save(self.x), self.x)
        self.assertIs(tandem.prefer_recompute(self.x), self.x)

    def test_change_no_result(self) -> None:
        def program(mark: Program) -> Program:
            return lambda x: mark(mark(mark(x).exp().t()).sin().t() * F.dropout(mark(x.cos()), 0.5))

        plain = program(lambda t: t)
        for mark in (tandem.must_save, tandem.prefer_recompute):
            for options in ({}, {"partitioner": "min_cut", "memory_budget": 0}):
                with self.subTest(mark.__name__, **options):
                    fast = tandem.compile(program(mark), **options)
                    self.expect_same(fast, plain)
                    self.assertEqual(tandem.explain(fast, self.x).eager_reason, "")

    def test_keep_and_compute_again(self) -> None:
        def cube(x: torch.Tensor) -> torch.Tensor:
            return tandem.prefer_recompute(x * x) * x

        def chosen(x: torch.Tensor) -> torch.Tensor:
            return tandem.must_save((x.exp() * x).topk(3)[0]).sin().exp()

        for partitioner in PARTITIONERS:
            self.assertEqual(
                tandem.explain(tandem.compile(cube, partitioner=partitioner), self.x).saved_bytes, 0
            )
        fast = tandem.compile(chosen, partitioner="min_cut", memory_budget=0.1)
        explained = tandem.explain(fast, self.x)
        self.assertEqual(calls(explained.backward, "aten::topk"), 0)
        self.assertEqual(
            [s.why for s in explained.saved if s.op == "aten::topk"],
            ["marked must_save", "marked must_save"],
        )

    def test_are_heeded_inside_of_checkpoints(self) -> None:
        def part(x: torch.Tensor) -> torch.Tensor:
            return tandem.must_save(F.dropout(x.exp(), 0.5) @ x.t()).sigmoid().tanh()

        fast = tandem.compile(lambda x: tandem.checkpoint(part, x.cos()))
        self.expect_same(fast, lambda x: part(x.cos()))
        self.assertEqual(calls(tandem.explain(fast, self.x).backward, "aten::mm"), 2)

    def test_through_dynamo(self) -> None:
        def cube(x: torch.Tensor) -> torch.Tensor:
            return tandem.prefer_recompute(x * x) * tandem.must_save(x.exp())

        before = tandem.counters().get("compile_backward", 0)
        self.expect_same(torch.compile(cube, backend="tandem", fullgraph=True), cube)
        self.assertGreater(tandem.counters().get("compile_backward", 0), before)


class CostModels(Memory):
    def test_are_asked_and_named_for_the_cache(self) -> None:
        def program(x: torch.Tensor) -> torch.Tensor:
            return x.sin() * x.cos() * x

        def dear(name: str) -> Any:
            def model(graph: tandem.Graph, node: tandem.Node) -> float:
                return 1.0 if node.op == name else 1e-6

            return model

        cache_on = mock.patch.dict(os.environ, {"TANDEM_CACHE": "on"})
        with cache_on, tempfile.TemporaryDirectory() as folder:
            cache = tandem.CacheOptions(directory=folder)
            for name in ("aten::sin", "aten::cos"):
                model = dear(name)
                fast = tandem.compile(
                    program, partitioner="min_cut", memory_budget_bytes=ROOM, cost_model=model, cache=cache
                )
                explained = tandem.explain(fast, self.x)
                self.assertEqual(calls(explained.backward, name), 1, "its derivative of the other alone")
                self.assertIn("cost model", explained.bypass_reason)
                model.name, model.version = "dear " + name, "1"
                named = tandem.compile(
                    program, partitioner="min_cut", memory_budget_bytes=ROOM, cost_model=model, cache=cache
                )
                self.assertEqual(tandem.explain(named, self.x).bypass_reason, "")

    def test_must_not_keep_the_graph(self) -> None:
        kept = []

        def keeps(graph: tandem.Graph, node: tandem.Node) -> float:
            kept.append(graph)
            return 1.0

        fast = tandem.compile(
            lambda x: x.exp().sin().cos(), partitioner="min_cut", memory_budget=0, cost_model=keeps
        )
        with self.assertRaisesRegex(tandem.Error, "keeps the graph"):
            fast(self.x)
        kept.clear()


class Partitioners(Memory):
    def test_f9_a_users_own_is_called_and_told_what_is_marked(self) -> None:
        seen = []

        def partition(joint: tandem.Joint, context: tandem.PartitionContext) -> tandem.Partition:
            seen.append((len(context.marked_must_save), len(context.marked_prefer_recompute)))
            return tandem.partition_default(joint, context)

        fast = tandem.compile(
            lambda x: tandem.prefer_recompute(tandem.must_save(x.cos()).sin()).cos(), partition_fn=partition
        )
        self.expect_same(fast, lambda x: x.cos().sin().cos())
        self.assertEqual(seen, [(1, 1)])


if __name__ == "__main__":
    unittest.main()
