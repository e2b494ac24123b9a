"""Compiled modules: an nn.Module that shares everything with the original, read live at every call."""

import copy
import gc
import io
import unittest
import weakref

import torch
from torch import nn

import tandem


def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 2))


class Modules(unittest.TestCase):
    def setUp(self):
        self.model, self.twin = make(), make()
        self.compiled = tandem.compile(self.model)
        self.x = torch.randn(6, 4)

    def same(self):
        """One training step of both, with equal random numbers, gives equal results,
        gradients and buffers."""
        torch.manual_seed(1)
        want = self.twin(self.x)
        torch.manual_seed(1)
        got = self.compiled(self.x)
        self.assertTrue(torch.equal(got, want))
        self.assertEqual(got.requires_grad, want.requires_grad)
        if want.requires_grad:
            got.sum().backward()
            want.sum().backward()
        for a, b in zip(self.model.parameters(), self.twin.parameters()):
            self.assertEqual(a.grad is None, b.grad is None)
            self.assertTrue(a.grad is None or torch.equal(a.grad, b.grad))
        for a, b in zip(self.model.buffers(), self.twin.buffers()):
            self.assertTrue(torch.equal(a, b))
        self.assertEqual(tandem.explain(self.compiled, self.x).eager_reason, "")

    def test_is_a_module_of_the_same_class_with_the_same_state(self):
        self.assertIsInstance(self.compiled, nn.Sequential)
        self.assertIsInstance(self.compiled, tandem.CompiledModule)
        self.assertEqual(list(self.compiled.state_dict()), list(self.twin.state_dict()))
        for a, b in zip(self.compiled.parameters(), self.model.parameters()):
            self.assertIs(a, b)
        self.assertIs(self.compiled[0], self.model[0])
        self.same()

    def test_train_and_eval_on_either_face(self):
        self.same()
        self.compiled.eval(), self.twin.eval()
        self.assertFalse(self.model.training)
        self.same()
        self.model.train(), self.twin.train()
        self.same()
        self.model[2].eval(), self.twin[2].eval()
        self.same()

    def test_freezing_and_thawing(self):
        self.same()
        for model in (self.compiled, self.twin):
            model[0].weight.requires_grad_(False)
            model[0].weight.grad = None
        self.same()
        self.compiled.requires_grad_(True), self.twin.requires_grad_(True)
        self.same()

    def test_to_another_dtype(self):
        self.same()
        self.compiled.to(torch.float64), self.twin.to(torch.float64)
        self.x = self.x.double()
        for model in (self.model, self.twin):
            model.zero_grad()
        self.same()
        self.assertEqual(self.model[0].weight.dtype, torch.float64)

    def test_loading_state(self):
        self.same()
        torch.manual_seed(5)
        other = {
            name: torch.rand_like(value) if value.is_floating_point() else value
            for name, value in self.twin.state_dict().items()
        }
        self.compiled.load_state_dict(other), self.twin.load_state_dict(other)
        self.same()
        fresh = {name: value + 1 for name, value in other.items()}
        (
            self.compiled.load_state_dict(copy.deepcopy(fresh), assign=True),
            self.twin.load_state_dict(copy.deepcopy(fresh), assign=True),
        )
        self.same()

    def test_replaced_submodules_parameters_and_attributes(self):
        self.same()
        for model in (self.compiled, self.twin):
            model[3] = nn.Tanh()
        self.same()
        for model in (self.compiled, self.twin):
            torch.manual_seed(3)
            model[4].weight = nn.Parameter(torch.randn(2, 8))
        self.same()
        for model in (self.compiled, self.twin):
            model[2].p = 0.1
        self.same()
        for model in (self.compiled, self.twin):
            model[1].momentum = 0.5
        self.same()

    def test_optimisers(self):
        optimisers = [torch.optim.AdamW(model.parameters(), lr=0.1) for model in (self.compiled, self.twin)]
        for _ in range(5):
            self.same()
            for optimiser in optimisers:
                optimiser.step()
                optimiser.zero_grad()

    def test_hooks_of_modules_count(self):
        self.same()
        handles = [
            model[0].register_forward_hook(lambda module, args, output: output * 2)
            for model in (self.compiled, self.twin)
        ]
        self.same()
        handles += [
            model.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
            for model in (self.compiled, self.twin)
        ]
        self.same()
        handles += [
            model[4].register_full_backward_hook(lambda module, grads, outputs: (grads[0] * 3,))
            for model in (self.compiled, self.twin)
        ]
        for model in (self.model, self.twin):
            model.zero_grad()
        self.same()
        for handle in handles:
            handle.remove()
        self.same()

    def test_hooks_of_parameters_run_at_every_backward(self):
        seen = []
        for model in (self.compiled, self.twin):
            model[0].weight.register_hook(lambda gradient: seen.append(1) or gradient * 2)
        self.same()
        self.same()
        self.assertEqual(len(seen), 4)

    def test_copies_are_independent_and_compiled(self):
        self.same()
        copied = copy.deepcopy(self.compiled)
        self.assertIsInstance(copied, tandem.CompiledModule)
        self.assertIsNot(copied[0].weight, self.model[0].weight)
        with torch.no_grad():
            copied[0].weight.zero_()
        self.same()

    def test_saved_and_loaded_whole(self):
        file = io.BytesIO()
        torch.save(self.compiled, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        self.assertIsInstance(loaded, tandem.CompiledModule)
        self.compiled.eval(), loaded.eval()
        self.assertTrue(torch.equal(loaded(self.x), self.compiled(self.x)))

    def test_a_replaced_parameter_dies(self):
        self.same()
        gone = weakref.ref(self.model[0].weight)
        self.compiled[0].weight = nn.Parameter(torch.randn(8, 4))
        self.compiled(self.x)
        gc.collect()
        self.assertIsNone(gone())

    def test_a_function_that_uses_a_module_sees_its_changes(self):
        model = self.model

        def step(x):
            return model(x)

        compiled = tandem.compile(step)
        for training in (True, False, True):
            model.train(training), self.twin.train(training)
            torch.manual_seed(2)
            want = self.twin(self.x)
            torch.manual_seed(2)
            self.assertTrue(torch.equal(compiled(self.x), want))


class Attributes(unittest.TestCase):
    def test_lazy_modules_are_compiled_once_they_know_their_sizes(self):
        model, x = nn.LazyLinear(3), torch.randn(2, 4)
        compiled = tandem.compile(model)
        for _ in range(2):
            self.assertTrue(torch.equal(compiled(x), model(x)))
        self.assertEqual(tandem.explain(compiled, x).eager_reason, "")

    def test_modules_of_torch_that_read_data_run_as_they_are(self):
        model, twin, x = nn.BatchNorm1d(3, momentum=None), nn.BatchNorm1d(3, momentum=None), torch.randn(5, 3)
        compiled = tandem.compile(model)
        for _ in range(2):
            self.assertTrue(torch.equal(compiled(x), twin(x)))
            self.assertTrue(torch.equal(model.running_mean, twin.running_mean))

    def test_a_forward_that_sets_attributes_runs_as_it_is(self):
        class Running(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.zeros(2))
                self.calls = 0

            def forward(self, x):
                self.calls += 1
                self.mean = self.mean * 0.5 + x
                return x + self.mean

        model, twin, x = Running(), Running(), torch.ones(2)
        compiled = tandem.compile(model)
        for _ in range(3):
            self.assertTrue(torch.equal(compiled(x), twin(x)))
            self.assertEqual(model.calls, twin.calls)
            self.assertTrue(torch.equal(model.mean, twin.mean))

    def test_objects_around_a_module(self):
        class Trainer:
            def __init__(self):
                self.model = make()
                self.scale = 2.0
                self.steps = 0

            @tandem.compile
            def loss(self, x):
                return self.model(x).sum() * self.scale

            @tandem.compile
            def step(self, x):
                self.steps += 1
                return self.model(x)

        trainer, x = Trainer(), torch.randn(3, 4)
        trainer.model.eval()
        for scale in (2.0, 3.0):
            trainer.scale = scale
            self.assertTrue(torch.equal(trainer.loss(x), trainer.model(x).sum() * scale))
        self.assertEqual(tandem.explain(Trainer.loss, trainer, x).eager_reason, "")
        trainer.model.train()
        torch.manual_seed(0)
        want = trainer.model(x).sum() * 3.0
        torch.manual_seed(0)
        self.assertTrue(torch.equal(trainer.loss(x), want))
        for wanted in (1, 2):
            trainer.step(x)
            self.assertEqual(trainer.steps, wanted)

    def test_objects_that_hold_their_compiled_form_are_collected(self):
        class Holder(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(2, 2)
                self.fast = tandem.compile(self.slow)

            def slow(self, x):
                return self.linear(x)

            @tandem.compile
            def method(self, x):
                return self.linear(x) + 1

        holder, x = Holder(), torch.ones(2)
        self.assertTrue(torch.equal(holder.fast(x), holder.linear(x)))
        self.assertTrue(torch.equal(holder.method(x), holder.linear(x) + 1))
        gone = weakref.ref(holder)
        del holder
        gc.collect()
        self.assertIsNone(gone())

    def test_what_is_made_at_the_first_call_is_compiled_from_the_second_on(self):
        class Lazy(nn.Module):
            table = None

            def forward(self, x):
                if self.table is None:
                    self.table = torch.arange(x.shape[0])
                return x * self.table

        model, x = Lazy(), torch.ones(3)
        compiled = tandem.compile(model)
        for _ in range(3):
            self.assertTrue(torch.equal(compiled(x), torch.arange(3.0)))
        self.assertEqual(tandem.explain(compiled, x).eager_reason, "")


if __name__ == "__main__":
    unittest.main()
