"""Gradients through compiled Python functions: modes, custom functions, hooks on
saved tensors, checkpoints."""

import unittest

import torch
from torch.utils.checkpoint import checkpoint

import tandem


class Cube(torch.autograd.Function):
    """Its gradient is on purpose not that of its forward."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x * ctx.factor, None


class Reads(torch.autograd.Function):
    """A backward that looks at data."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * (2 if gradient.sum().item() > 0 else 3)


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise LookupError("no gradient today")


def gradients(function, *inputs):
    leaves = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
    result = function(*leaves)
    if result.requires_grad:
        result.sum().backward()
    return [result.detach()] + [leaf.grad for leaf in leaves]


class Gradients(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(3, 4, requires_grad=True)

    def same(self, function, *inputs):
        compiled = tandem.compile(function)
        inputs = inputs or (self.x,)
        for _ in range(2):
            torch.manual_seed(7)
            want = gradients(function, *inputs)
            torch.manual_seed(7)
            got = gradients(compiled, *inputs)
            for a, b in zip(got, want, strict=True):
                self.assertEqual(a is None, b is None)
                self.assertTrue(a is None or torch.equal(a, b))
        return compiled

    def compiled_same(self, function, *inputs):
        compiled = self.same(function, *inputs)
        self.assertEqual(tandem.explain(compiled, *(inputs or (self.x,))).eager_reason, "")

    def test_custom_functions(self):
        self.compiled_same(lambda x: Cube.apply(x.sin(), 5.0).cos())

    def test_custom_functions_whose_backward_reads_data_run_as_they_are(self):
        compiled = self.same(lambda x: Reads.apply(x))
        self.assertIn("item", tandem.explain(compiled, self.x).eager_reason)

    def test_an_error_of_a_custom_backward_comes_when_it_is_called(self):
        result = tandem.compile(lambda x: Fails.apply(x) + 1)(self.x)
        for _ in range(2):
            with self.assertRaisesRegex(LookupError, "no gradient today"):
                result.sum().backward(retain_graph=True)

    def test_no_grad_and_inference_mode_around_and_inside(self):
        def partly(x):
            with torch.no_grad():
                y = x * 2
            return x * y

        self.compiled_same(partly)
        compiled = tandem.compile(lambda x: x * 2)
        with torch.no_grad():
            self.assertFalse(compiled(self.x).requires_grad)
        with torch.inference_mode():
            self.assertTrue(compiled(self.x).is_inference())
        self.assertTrue(compiled(self.x).requires_grad)

    def test_autocast_around_and_inside(self):
        weight = torch.randn(4, 4, requires_grad=True)
        compiled = tandem.compile(lambda x, w: (x @ w).float().tanh())
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16):
                want, got = (self.x @ weight).float().tanh(), compiled(self.x, weight)
            self.assertTrue(torch.equal(got, want))
            for a, b in zip(
                torch.autograd.grad(got.sum(), (self.x, weight)),
                torch.autograd.grad(want.sum(), (self.x, weight)),
            ):
                self.assertTrue(torch.equal(a, b))

        def inside(x, w):
            with torch.autocast("cpu", torch.bfloat16):
                y = x @ w
            return y.float() @ w

        self.compiled_same(inside, self.x, weight)

    def test_a_gradient_inside(self):
        def penalty(x):
            y = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad((y * y * y).sum(), y, create_graph=True)
            return slope * x

        self.compiled_same(penalty)

    def test_a_gradient_inside_of_a_captured_tensor(self):
        weight = torch.randn(4, requires_grad=True)
        computed = torch.randn(4, requires_grad=True) * 2

        def slope(x):
            first, second = torch.autograd.grad(
                (x * weight * weight * computed).sum(), (weight, computed), create_graph=True
            )
            return (first * x + second).sum()

        compiled = tandem.compile(slope)
        for _ in range(2):
            got, want = compiled(self.x), slope(self.x)
            self.assertTrue(torch.equal(got, want))
            for a, b in zip(*(torch.autograd.grad(y, (self.x, weight, computed)) for y in (got, want))):
                self.assertTrue(torch.equal(a, b))
        self.assertEqual(tandem.explain(compiled, self.x).eager_reason, "")

    def test_a_gradient_inside_through_a_captured_tensor_runs_as_it_is(self):
        weight = torch.randn(4, requires_grad=True)
        computed = weight * 2
        self.same(lambda x: torch.autograd.grad((x * computed).sum(), weight, create_graph=True)[0] * x)

    def test_a_backward_inside_runs_as_it_is(self):
        weight = torch.ones(4, requires_grad=True)

        def step(x):
            (x.detach() * weight).sum().backward()
            return x + 1

        compiled = tandem.compile(step)
        for times in (1, 2):
            compiled(torch.ones(4))
            self.assertTrue(torch.equal(weight.grad, torch.full((4,), float(times))))

    def test_gradients_of_gradients(self):
        x = torch.randn(5, dtype=torch.float64, requires_grad=True)
        compiled = tandem.compile(lambda x: (x.sin() * x.exp()).sum())

        def orders(function):
            (first,) = torch.autograd.grad(function(x), x, create_graph=True)
            (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
            (third,) = torch.autograd.grad((second * second).sum(), x)
            return first, second, third

        for got, want in zip(orders(compiled), orders(lambda x: (x.sin() * x.exp()).sum())):
            torch.testing.assert_close(got, want, rtol=1e-10, atol=0)

    def test_hooks_on_saved_tensors_see_what_compiled_code_saves(self):
        compiled, packed, unpacked = tandem.compile(lambda x: x.sin().cos()), [], []

        def pack(tensor):
            packed.append(tensor)
            return tensor.numpy(force=True).copy()

        def unpack(data):
            unpacked.append(data)
            return torch.from_numpy(data)

        want = gradients(lambda x: x.sin().cos(), self.x)[1]
        for _ in range(2):
            leaf = self.x.detach().clone().requires_grad_()
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                result = compiled(leaf)
            result.sum().backward()
            self.assertTrue(torch.equal(leaf.grad, want))
        self.assertEqual(len(packed), 4)
        self.assertEqual(len(unpacked), 4)

    def test_hooks_on_saved_tensors_inside(self):
        def halved(x):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 0.5, lambda t: t):
                return x.sin()

        self.same(halved)

    def test_custom_functions_applied_to_a_captured_parameter(self):
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        fn = tandem.compile(lambda x: Cube.apply(w, 5.0) * x)
        self.assertEqual(tandem.explain(fn, x).eager_reason, "")
        fn(x).sum().backward()
        self.assertTrue(torch.equal(w.grad, x.detach() * w.detach() * 5))

    def test_checkpoints_of_what_is_written(self):
        for reentrant in (False, True):
            states = []
            for compiled in (False, True):
                torch.manual_seed(0)
                norm = torch.nn.BatchNorm1d(3)
                fn = lambda x: checkpoint(norm, x, use_reentrant=reentrant)
                if compiled:
                    fn = tandem.compile(fn)
                x = torch.randn(4, 3, requires_grad=True)
                for _ in range(2):
                    (fn(x) ** 2).sum().backward()
                states.append([x.grad, norm.weight.grad, norm.running_mean, norm.num_batches_tracked])
            for want, got in zip(*states):
                self.assertTrue(torch.equal(got, want))

    def test_checkpoints(self):
        def block(x):
            return x.sin().exp()

        self.same(lambda x: checkpoint(block, x, use_reentrant=False).cos())

        def random(x):
            return torch.nn.functional.dropout(x.sin(), 0.5).exp()

        self.same(lambda x: checkpoint(random, x, use_reentrant=False).cos())

    def test_tensor_hooks_inside(self):
        def hooked(x):
            y = x.sin()
            y.register_hook(lambda gradient: gradient * 2)
            return y.cos()

        self.compiled_same(hooked)

    def test_random_numbers_are_eagers(self):
        self.compiled_same(
            lambda x: torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x) + torch.randn(4)
        )

    def test_seeding_inside_is_left_to_eager(self):
        def seeded(x):
            torch.manual_seed(3)
            return x + torch.rand(4)

        compiled = self.same(seeded)
        self.assertIn("seeds", tandem.explain(compiled, self.x).eager_reason)

    def test_tracing_leaves_generators_alone(self):
        before = torch.get_rng_state()
        tandem.explain(tandem.compile(lambda x: torch.rand_like(x)), self.x)
        self.assertTrue(torch.equal(torch.get_rng_state(), before))

    def test_tensors_made_inside(self):
        self.compiled_same(
            lambda x: x * torch.tensor([1.0, 2.0, 3.0, 4.0]) + torch.arange(4) + torch.ones(3, 1)
        )

    def test_written_inputs(self):
        def write(x, y):
            y.mul_(2)
            y[0] += 1
            return x * y

        compiled = tandem.compile(write)
        for _ in range(2):
            a, b = torch.ones(3), torch.ones(3)
            self.assertTrue(torch.equal(compiled(self.x, a[:, None]), write(self.x, b[:, None])))
            self.assertTrue(torch.equal(a, b))

    def test_functional_transforms_get_the_original(self):
        compiled = tandem.compile(lambda x: x.sin().sum())
        self.assertTrue(torch.equal(torch.func.grad(compiled)(self.x.detach()), self.x.detach().cos()))
        rows = torch.func.vmap(compiled)(self.x.detach())
        torch.testing.assert_close(rows, self.x.detach().sin().sum(1))

    def test_dispatch_modes_see_every_operator(self):
        from torch.utils._python_dispatch import TorchDispatchMode

        class Count(TorchDispatchMode):
            seen = 0

            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                self.seen += 1
                return function(*args, **(kwargs or {}))

        compiled = tandem.compile(lambda x: x.sin().cos())
        compiled(self.x)
        with Count() as count:
            compiled(self.x)
        self.assertEqual(count.seen, 2)

    def test_default_device_and_dtype(self):
        compiled = tandem.compile(lambda x: x + torch.ones(4))
        compiled(self.x.detach())
        torch.set_default_dtype(torch.float64)
        try:
            self.assertEqual(compiled(self.x.detach()).dtype, torch.float64)
        finally:
            torch.set_default_dtype(torch.float32)
        with torch.device("meta"):
            made = tandem.compile(lambda: torch.ones(4))()
        self.assertEqual(made.device.type, "meta")


if __name__ == "__main__":
    unittest.main()
