"""The benchmark models of Python, trained eagerly and compiled: losses, gradients and buffers bit for bit."""

import copy
import pathlib
import sys
import unittest

import torch
import torch._dynamo

import tandem
import tandem.dynamo

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from torch_models import MAKERS  # noqa: E402

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


def make(name, device):
    torch.manual_seed(0)
    model, inputs = MAKERS[name](False)
    if name == "chain":
        inputs = [inputs[0][:64]]
    return model.to(device).train(), [tensor.to(device) for tensor in inputs]


class Models(unittest.TestCase):
    def same(self, name, device, compile, steps):
        torch._dynamo.reset()
        model, inputs = make(name, device)
        twin = copy.deepcopy(model)
        step = compile(model)
        optimisers = [torch.optim.AdamW(m.parameters()) for m in (model, twin)]
        for _ in range(steps):
            got, want = step(*inputs), twin(*inputs)
            got.backward()
            want.backward()
            self.assertTrue(torch.equal(got, want))
            for a, b in zip(model.parameters(), twin.parameters(), strict=True):
                self.assertTrue(torch.equal(a.grad, b.grad))
            for a, b in zip(model.buffers(), twin.buffers(), strict=True):
                self.assertTrue(torch.equal(a, b))
            for optimiser in optimisers:
                optimiser.step()
                optimiser.zero_grad()
        return step, inputs

    def test_tandem_compile_trains_all_six(self):
        torch.use_deterministic_algorithms(torch.cuda.is_available())
        for device in DEVICES:
            for name in MAKERS:
                with self.subTest(model=name, device=device):
                    step, inputs = self.same(name, device, tandem.compile, 10)
                    self.assertEqual(tandem.explain(step, *inputs).eager_reason, "")

    def test_torch_compile_trains_with_our_backend(self):
        torch.use_deterministic_algorithms(torch.cuda.is_available())
        for device in DEVICES:
            for name in ("gpt", "resnet", "lstm"):
                with self.subTest(model=name, device=device):
                    tandem.reset()
                    self.same(
                        name, device, lambda model: torch.compile(model, backend=tandem.dynamo.backend), 5
                    )
                    self.assertEqual(tandem.counters()["compile_backward"], 1)

    def test_torch_compile_refuses_what_tandem_compile_trains(self):
        """When this fails, torch has learnt it: say so in the docs."""
        torch._dynamo.reset()
        model, inputs = make("schnet", "cpu")
        with self.assertRaises(Exception):
            torch.compile(model, backend="aot_eager", fullgraph=True)(*inputs).backward()


if __name__ == "__main__":
    unittest.main()
