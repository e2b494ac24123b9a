"""torch.compile(backend="tandem"), and torch.compile around what tandem.compile made."""

import unittest

import torch
import torch._dynamo

import tandem
import tandem.dynamo


def train(function, parameters, inputs, steps=4):
    optimiser, losses = torch.optim.AdamW(parameters), []
    for _ in range(steps):
        loss = function(*inputs)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses)


def compiled(function, **options):
    # By value: the entry point of the same name exists only where the package is installed.
    return torch.compile(function, backend=tandem.dynamo.backend, **options)


class Dynamo(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        tandem.reset()

    def test_training(self):
        def make():
            torch.manual_seed(0)
            return torch.nn.Sequential(
                torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Linear(8, 1)
            )

        model, twin, x = make(), make(), torch.randn(6, 4)
        step = compiled(lambda x: model(x).square().mean())
        got, want = (
            train(step, model.parameters(), [x]),
            train(lambda x: twin(x).square().mean(), twin.parameters(), [x]),
        )
        self.assertTrue(torch.equal(got, want))
        self.assertEqual(tandem.counters()["trace"], 1)
        self.assertEqual(tandem.counters()["compile_backward"], 1)

    def test_parameters_and_buffers_are_static_inputs(self):
        told = []

        def compiler(graph, context):
            told.append((context.stage, sorted(context.example[i].sizes for i in context.static_inputs)))
            return graph.run

        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
        function = compiled(lambda x, s: model(x * s), options={"fw_compiler": compiler}, dynamic=True)
        function(torch.randn(6, 4), 0.5).sum().backward()
        kept = sorted(list(tensor.shape) for tensor in (*model.parameters(), *model.buffers()))
        self.assertEqual(told[0], ("forward", kept))
        self.assertEqual(told[1][0], "backward")
        self.assertIn([8, 1], told[1][1])  # the weight, as the product takes it

    def test_graph_breaks(self):
        def broken(x):
            y = x.sin()
            if y.sum().item() > 0:
                return y.cos()
            return y.exp()

        function = compiled(broken)
        for sign in (1, -1, 1):
            x = torch.full((3,), 0.5 * sign, requires_grad=True)
            self.assertTrue(torch.equal(function(x), broken(x)))

    def test_sizes_that_change_are_numbers(self):
        def sized(x):
            return (x * x.shape[0]).reshape(-1)[: x.shape[1]].sin()

        function = compiled(sized)
        for rows in (3, 4, 5, 3):
            x = torch.randn(rows, 4, requires_grad=True)
            got, want = function(x), sized(x)
            self.assertTrue(torch.equal(got, want))
            self.assertTrue(torch.equal(*(torch.autograd.grad(y.sum(), x)[0] for y in (got, want))))

    def test_numbers_that_change(self):
        class Softer(torch.nn.Module):
            t = 1.0

            def forward(self, x):
                return torch.softmax(x / self.t, 0) + torch.tensor(self.t * 2)

        def of_arguments(backend, values):
            function = torch.compile(lambda x, s: (x * s).sum() - s, backend=backend)
            return [function(torch.ones(3), s) for s in values]

        def of_attributes(backend, module, name, values):
            function, results = torch.compile(module, backend=backend), []
            for value in values:
                setattr(module, name, value)
                torch.manual_seed(0)
                x = torch.arange(8.0, requires_grad=True)
                results += [function(x), *torch.autograd.grad(function(x).square().sum(), x)]
            return results

        for run in (
            lambda backend: of_arguments(backend, (1.0, 0.5, 0.25, 1 / 3)),
            lambda backend: of_arguments(backend, (1, 2, 3, 4)),
            lambda backend: of_attributes(backend, Softer(), "t", (1.0, 0.5, 1 / 3)),
            lambda backend: of_attributes(backend, torch.nn.Dropout(0.1), "p", (0.1, 0.2, 0.3)),
        ):
            torch._dynamo.reset()
            want = run("eager")
            torch._dynamo.reset()
            got = run(tandem.dynamo.backend)
            self.assertTrue(all(map(torch.equal, got, want)))

    def test_numbers_that_settle_are_compiled(self):
        function, x = compiled(lambda x, s: (x * s).sin()), torch.ones(3)
        for s in (1.0, 0.5, 0.25, 0.25, 0.25):
            self.assertTrue(torch.equal(function(x, s), (x * s).sin()))
        self.assertEqual(tandem.counters()["ran_uncompiled"], 0)
        self.assertEqual(tandem.counters()["trace"], 3)

    def test_graphs_that_look_at_data_run_as_they_are(self):
        def scaled(x):
            return x * x.max().item() + x.nonzero().sum()

        x = torch.arange(3.0)
        with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
            function = compiled(scaled)
            for factor in (1, 2, 3):
                self.assertTrue(torch.equal(function(x * factor), scaled(x * factor)))
        self.assertGreater(tandem.counters()["ran_uncompiled"], 0)

    def test_options_are_tandems(self):
        seen = []

        def compiler(graph, context):
            seen.append(context.stage)
            return graph.run

        function = compiled(lambda x: x.sin().cos(), options={"fw_compiler": compiler})
        x = torch.randn(3, requires_grad=True)
        function(x).sum().backward()
        self.assertEqual(seen, ["forward", "backward"])
        with self.assertRaisesRegex(Exception, "colour"):
            compiled(lambda x: x + 1, options={"colour": "red"})(x)
        with self.assertRaisesRegex(Exception, "max-autotune"):
            torch._dynamo.reset()
            compiled(lambda x: x + 1, mode="max-autotune")(x)

    def test_dynamo_reset_resets_us(self):
        compiled(lambda x: x + 1)(torch.ones(2))
        self.assertGreater(tandem.counters()["trace"], 0)
        torch._dynamo.reset()
        self.assertEqual(tandem.counters()["trace"], 0)

    def test_custom_functions_and_checkpoints(self):
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, gradient):
                return gradient * ctx.saved_tensors[0] * 5

        def program(x):
            return torch.utils.checkpoint.checkpoint(
                lambda y: y.sin().exp(), Twice.apply(x), use_reentrant=False
            )

        function, x = compiled(program), torch.randn(3, requires_grad=True)
        got, want = function(x), program(x)
        self.assertTrue(torch.equal(got, want))
        self.assertTrue(torch.equal(*(torch.autograd.grad(y.sum(), x)[0] for y in (got, want))))

    def test_checkpoints_draw_their_numbers_again(self):
        def program(x, w):
            def part(y):
                return torch.nn.functional.dropout(y @ w, 0.5)

            return torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False).sin()

        x, w = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
        function = compiled(program)
        for seed in range(3):
            results = []
            for run in (function, program):
                torch.manual_seed(seed)
                results.append(torch.autograd.grad(run(x, w).sum(), (x, w)))
                torch.rand(1)
            self.assertTrue(all(map(torch.equal, *results)))

    def test_checkpoints_may_write_buffers(self):
        class Normed(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4)

            def inner(self, x):
                return torch.utils.checkpoint.checkpoint(
                    lambda y: self.second(y).sin(), x, use_reentrant=False
                )

            def forward(self, x):
                return torch.utils.checkpoint.checkpoint(
                    lambda y: self.inner(self.first(y)).exp(), x, use_reentrant=False
                )

        results = []
        for make in (compiled, lambda module: module):
            torch.manual_seed(0)
            module = Normed()
            function, x = make(module), torch.randn(6, 4, requires_grad=True)
            for _ in range(3):
                (function(x).sum() + function(x * 2).sum()).backward()
            results.append([x.grad, *(p.grad for p in module.parameters()), *module.buffers()])
        self.assertTrue(all(map(torch.equal, *results)))

    def test_torch_compile_around_a_compiled_function(self):
        inner = tandem.compile(lambda x: x.sin() * 2)
        function = torch.compile(lambda x: inner(x).cos(), backend="eager")
        x = torch.randn(3, requires_grad=True)
        for _ in range(2):
            self.assertTrue(torch.equal(function(x), (x.sin() * 2).cos()))
        self.assertEqual(tandem.counters()["trace"], 1)
        module = tandem.compile(torch.nn.Linear(3, 3))
        self.assertTrue(
            torch.equal(torch.compile(lambda x: module(x) + 1, backend="eager")(x), module(x) + 1)
        )

    def test_a_watched_call_inside_is_none_of_dynamos(self):
        for backend in ("eager", "aot_eager", tandem.dynamo.backend):
            for requires_grad in (False, True):
                with self.subTest(backend=backend, requires_grad=requires_grad):
                    torch._dynamo.reset()
                    inner = tandem.compile(lambda x: (x * 2).sin())
                    outer, before = (
                        torch.compile(lambda x: inner(x) + 1, backend=backend),
                        tandem.counters()["promise_broken"],
                    )
                    x = torch.ones(2, requires_grad=requires_grad)
                    for _ in range(5):
                        result = outer(x)
                        self.assertTrue(torch.equal(result, (torch.ones(2) * 2).sin() + 1))
                    self.assertEqual(tandem.counters()["promise_broken"], before)
                    if requires_grad:
                        self.assertTrue(
                            torch.equal(
                                torch.autograd.grad(result.sum(), x)[0], (torch.ones(2) * 2).cos() * 2
                            )
                        )

    def test_fake_tensors_of_python_get_the_original(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        function = tandem.compile(lambda x: x.sin() * 2)
        with FakeTensorMode() as mode:
            fake = mode.from_tensor(torch.ones(3))
            self.assertEqual(function(fake).shape, (3,))
        self.assertIsInstance(function(fake), torch._subclasses.FakeTensor)
        self.assertTrue(torch.equal(function(torch.ones(3)), torch.ones(3).sin() * 2))

    def test_compiled_autograd_is_right_or_refused(self):
        from torch._dynamo import compiled_autograd

        function, x = tandem.compile(lambda x: x.sin() * 2), torch.randn(3, requires_grad=True)
        result = function(x)
        try:
            with compiled_autograd._enable(lambda graph: graph):
                result.sum().backward()
        except RuntimeError as error:
            self.assertIn("tandem", str(error))
            self.assertIn("compiled autograd", str(error))
        else:
            self.assertTrue(torch.equal(x.grad, x.detach().cos() * 2))


if __name__ == "__main__":
    unittest.main()
