"""Graphs, compilers and partitioners written in Python; the same graph from Python and from C++."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch

import tandem

PROGRAM = pathlib.Path(tandem.__file__).parent / "bin" / "tandem"


class Graphs(unittest.TestCase):
    def setUp(self):
        self.x = torch.randn(3, 4, requires_grad=True)

    def test_a_graph_can_be_read_printed_parsed_run_and_drawn(self):
        graph = tandem.explain(tandem.compile(lambda x: x.sin() * 2.5), self.x).joint
        self.assertEqual([node.op for node in graph.nodes][:2], ["aten::sin", "aten::mul.Tensor"])
        self.assertEqual(
            [node.phase for node in graph.nodes], ["forward", "forward", "backward", "backward", "backward"]
        )
        meta = graph.meta(graph.inputs[0])
        self.assertEqual(
            (meta.dtype, meta.sizes, meta.strides, meta.requires_grad), (torch.float32, [3, 4], [4, 1], True)
        )
        self.assertEqual(graph.nodes[1].arguments[0], graph.nodes[0].results[0])
        again = tandem.Graph.parse(str(graph))
        self.assertEqual(again.hash(), graph.hash())
        graph.verify()
        self.assertIn("digraph", graph.to_dot())
        forward = tandem.explain(tandem.compile(lambda x: x.sin() * 2.5), self.x).forward
        self.assertTrue(torch.equal(forward.run([self.x.detach()])[0], self.x.detach().sin() * 2.5))

    def test_an_explanation(self):
        e = tandem.explain(lambda x: x.sin().cos(), self.x)
        self.assertIn("argument x", e.contract)
        self.assertEqual((e.saved_bytes, e.eager_saved_bytes, e.cache_state), (48, 48, "off"))
        self.assertEqual(sum(value.bytes for value in e.saved), 48)
        self.assertTrue(all(value.why for value in e.saved))
        self.assertGreater(e.nodes_recorded, 0)
        self.assertEqual(
            [(kernel.name, kernel.stage) for kernel in e.kernels if kernel.stage == "forward"],
            [("aten::sin", "forward"), ("aten::cos", "forward")],
        )
        self.assertTrue(all(kernel.nodes and not kernel.is_generated for kernel in e.kernels))

    def test_names_of_parameters_and_arguments(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 2))
        contract = tandem.explain(tandem.compile(model), self.x).contract
        self.assertIn("parameter 0.weight", contract)
        self.assertIn("argument input", contract)
        self.assertIn(
            "argument d['mask'][0]",
            tandem.explain(lambda x, d: x * d["mask"][0], self.x, {"mask": [self.x + 1]}).contract,
        )

    def test_compilers_in_python(self):
        seen = []

        def compiler(graph, context):
            seen.append((context.stage, len(graph)))

            def run(inputs):
                return graph.run(inputs)

            return run

        compiled = tandem.compile(lambda x: x.sin().cos(), fw_compiler=compiler)
        result = compiled(self.x)
        result.sum().backward()
        self.assertTrue(torch.equal(self.x.grad, torch.autograd.grad(self.x.sin().cos().sum(), self.x)[0]))
        with torch.no_grad():
            compiled(self.x)
        self.assertEqual([part for part, _ in seen], ["forward", "backward", "inference"])

    def test_errors_of_compilers_arrive_as_themselves(self):
        def fails(graph, context):
            raise ZeroDivisionError("in the compiler")

        with self.assertRaisesRegex(ZeroDivisionError, "in the compiler"):
            tandem.compile(lambda x: x.sin(), fw_compiler=fails)(self.x)
        with self.assertRaisesRegex(tandem.Error, "return a function"):
            tandem.compile(lambda x: x.sin(), fw_compiler=lambda graph, context: 3)(self.x)

    def test_partitioners_in_python(self):
        seen = []

        def partition(joint, context):
            seen.append((joint.primals, joint.forward_outputs, context.memory_budget, context.must_save))
            return tandem.partition_default(joint, context)

        tandem.compile(lambda x: x.sin().cos(), partition_fn=partition, memory_budget=0.5)(
            self.x
        ).sum().backward()
        self.assertEqual(seen, [(1, 1, 0.5, [])])


class SameAsCpp(unittest.TestCase):
    """Python registers Meta kernels of its own; what is recorded must not depend on them."""

    def key_from_cpp(self, module, *sizes):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "module.pt")
            torch.jit.script(module).save(path)
            inputs = [argument for size in sizes for argument in ("--input", size)]
            done = subprocess.run(
                [PROGRAM, "explain", path, *inputs, "--json"], capture_output=True, text=True, check=True
            )
        return json.loads(done.stdout.splitlines()[-1])["key"]

    def same(self, module, *inputs):
        sizes = ["x".join(str(n) for n in tensor.shape) for tensor in inputs]
        self.assertEqual(
            tandem.explain(tandem.compile(module), *inputs).key, self.key_from_cpp(module, *sizes)
        )

    def test_layers_attention_and_losses(self):
        class Layers(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(8, 3, 3, 3))
                self.bias = torch.nn.Parameter(torch.randn(8))

            def forward(self, x):
                aten = torch.ops.aten
                y = aten.convolution(x, self.weight, self.bias, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
                y = aten.max_pool2d_with_indices(aten.gelu(y), [2, 2])[0]
                y = aten.transpose(aten.flatten(y, 2), 1, 2)
                y = aten.native_layer_norm(y, [8], self.bias, self.bias, 1e-5)[0]
                y = aten._softmax(aten.baddbmm(y, y, aten.bmm(aten.transpose(y, 1, 2), y)), -1, False)
                y = aten.avg_pool2d(aten.upsample_nearest2d(aten.unsqueeze(y, 0), [20, 20]), [3, 3])
                return aten.mean(aten.hardswish(aten.addcmul(y, y, y)))

        self.same(Layers(), torch.randn(2, 3, 8, 8))

    def test_indexing_reductions_and_linear_algebra(self):
        class Many(torch.nn.Module):
            def forward(self, x):
                aten = torch.ops.aten
                square = aten.mm(x, aten.transpose(x, 0, 1))
                parts = aten.sum(aten.topk(x, 2, 1, True, True)[0]) + aten.amax(aten.abs(x), [0], False)
                places = aten.zeros_like(x, dtype=torch.int64)
                picked = aten.cumsum(aten.gather(x, 1, places), 1) + aten.var(x, [1], True, True)
                found = (
                    aten._linalg_svd(square)[1]
                    + aten.linalg_vector_norm(square, 2, [1], False)
                    + aten._linalg_det(square)[0]
                )
                return aten.logsumexp(picked, [1], False) * aten.sort(found)[0] + aten.sum(parts)

        self.same(Many(), torch.randn(4, 5))


if __name__ == "__main__":
    unittest.main()
