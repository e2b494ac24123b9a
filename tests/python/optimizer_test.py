"""Steps of torch's optimisers, alone and with the rest of a training step in one compiled function, bit for
bit as in eager."""

import copy
import math
import unittest

import torch

import tandem

STEPS = 12
SGD = {
    "plain": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "nesterov": lambda parameters: torch.optim.SGD(
        parameters, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True
    ),
    "foreach": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=True),
}
ADAM = {
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-2),
    "Adam amsgrad": lambda parameters: torch.optim.Adam(parameters, lr=1e-2, amsgrad=True, weight_decay=0.01),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2),
    "AdamW amsgrad": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2, amsgrad=True),
    "AdamW foreach": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2, foreach=True),
    "Adam foreach amsgrad": lambda parameters: torch.optim.Adam(
        parameters, lr=1e-2, foreach=True, amsgrad=True, maximize=True
    ),
    "AdamW fused": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2, fused=True),
    "NAdam": lambda parameters: torch.optim.NAdam(parameters, lr=1e-2),
    "Adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=1e-2, lr_decay=0.1),
}


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 1)
    )


def whole_step(module, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def gathering_step(module, optimizer):
    def step(x):
        loss = module(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def plain(module, optimizer, compile, make_step):
    return compile(make_step(module, optimizer))


def step_alone(module, optimizer, compile, _):
    step = compile(lambda: optimizer.step())

    def train(x):
        optimizer.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        step()
        return loss

    return train


def seen(module, optimizer, loss):
    state = [
        value.detach().clone()
        for values in optimizer.state.values()
        for value in values.values()
        if isinstance(value, torch.Tensor)
    ]
    return [
        loss.detach().clone(),
        *(p.detach().clone() for p in module.parameters()),
        *(p.grad.clone() for p in module.parameters()),
        *state,
    ]


def trained(step, module, optimizer):
    """What each of some steps leaves behind, and how many of the later ones ran uncompiled."""
    found, uncompiled = [], 0
    for i in range(STEPS):
        torch.manual_seed(i)
        before = tandem.counters().get("ran_uncompiled", 0)
        found.append(seen(module, optimizer, step(torch.randn(8, 6))))
        uncompiled += i >= 3 and tandem.counters().get("ran_uncompiled", 0) > before
    return found, uncompiled


class WholeSteps(unittest.TestCase):
    def expect_equal(self, make, make_step=whole_step, compiled=plain):
        module = network()
        optimizer = make(module.parameters())
        expected, _ = trained(compiled(module, optimizer, lambda f: f, make_step), module, optimizer)
        for watched in (True, False):
            with self.subTest(watched=watched):
                module = network()
                optimizer = make(module.parameters())
                got, uncompiled = trained(
                    compiled(module, optimizer, tandem.compile(watched_calls=watched), make_step),
                    module,
                    optimizer,
                )
                for i, (a, b) in enumerate(zip(expected, got)):
                    self.assertTrue(all(torch.equal(x, y) for x, y in zip(a, b, strict=True)), f"step {i}")
                self.assertEqual(uncompiled, 0)
        self.assertEqual(tandem.counters().get("promise_broken", 0), 0)

    def setUp(self):
        tandem.reset()

    def test_steps_of_sgd(self):
        for name, make in SGD.items():
            with self.subTest(name):
                self.expect_equal(make)
                self.expect_equal(make, compiled=step_alone)

    def test_steps_of_adam_and_its_kin(self):
        for name, make in ADAM.items():
            with self.subTest(name):
                self.expect_equal(make)
                self.expect_equal(make, compiled=step_alone)

    def test_parameters_of_other_kinds(self):
        """Without dimensions, in other dtypes, and one that gets no gradient."""

        def trained(compile, make):
            parameters = [
                torch.nn.Parameter(torch.linspace(0.5, 1, 3).to(dtype))
                for dtype in (torch.float32, torch.float64, torch.bfloat16)
            ]
            parameters += [torch.nn.Parameter(torch.tensor(0.7)), torch.nn.Parameter(torch.ones(2))]
            optimizer = make(parameters)

            @compile
            def step(x):
                optimizer.zero_grad()
                sum((p.double() * x).sin().sum() for p in parameters[:4]).backward()
                optimizer.step()

            for i in range(6):
                step(torch.tensor(0.3 * (i + 1)))
            return [
                *parameters,
                *(
                    t
                    for s in optimizer.state_dict()["state"].values()
                    for t in s.values()
                    if isinstance(t, torch.Tensor)
                ),
            ]

        for name in ("Adam amsgrad", "AdamW foreach"):
            expected = trained(lambda f: f, ADAM[name])
            for watched in (True, False):
                with self.subTest(name, watched=watched):
                    got = trained(tandem.compile(watched_calls=watched), ADAM[name])
                    self.assertTrue(all(torch.equal(a, b) for a, b in zip(expected, got, strict=True)))
        self.assertEqual(tandem.counters().get("promise_broken", 0), 0)

    def expect_same(self, trained):
        expected = trained(lambda f: f)
        for watched in (True, False):
            with self.subTest(watched=watched):
                self.assertTrue(
                    all(
                        torch.equal(a, b)
                        for a, b in zip(expected, trained(tandem.compile(watched_calls=watched)), strict=True)
                    )
                )
        self.assertEqual(tandem.counters().get("promise_broken", 0), 0)

    def test_a_parameter_that_gets_its_first_gradient_later(self):
        def trained(compile):
            first, second = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
            optimizer = torch.optim.SGD([first, second], lr=0.1)
            step = compile(lambda: optimizer.step())
            for i in range(12):
                first.grad = torch.full((2,), float(i))
                second.grad = torch.full((2,), float(i)) if i in (5, 6, 7, 10) else None
                step()
            return [first.detach(), second.detach()]

        self.expect_same(trained)

    def test_gradients_of_parameters_that_a_step_clears_and_does_not_use(self):
        def trained(compile):
            body, *heads = (torch.nn.Parameter(torch.linspace(1, 2, 3)) for _ in range(3))
            optimizer = torch.optim.Adam([body, *heads], lr=0.1)

            def step_of(head):
                def step(x):
                    optimizer.zero_grad()
                    (body * head * x).sin().sum().backward()
                    optimizer.step()

                return step

            steps, seen = [compile(step_of(head)) for head in heads], []
            for i in range(14):
                steps[i % 2 if i < 9 else 0](torch.full((3,), float(i)))
                seen += [p.detach().clone() for p in heads] + [torch.tensor(p.grad is None) for p in heads]
            return seen

        self.expect_same(trained)

    def test_a_learning_rate_that_changes(self):
        def trained(compile):
            module = network()
            optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
            step = compile(whole_step(module, optimizer))
            for i in range(STEPS):
                step(torch.full((8, 6), float(i)))
                schedule.step()
            return list(module.parameters())

        self.assertTrue(all(map(torch.equal, trained(tandem.compile), trained(lambda f: f))))

    def test_state_that_is_saved_and_loaded(self):
        def trained(compile):
            module = network()
            optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
            step = compile(whole_step(module, optimizer))
            for i in range(STEPS):
                if i == 5:
                    saved = copy.deepcopy(optimizer.state_dict())
                if i == 8:
                    optimizer.load_state_dict(saved)
                step(torch.full((8, 6), float(i)))
            return list(module.parameters())

        self.assertTrue(all(map(torch.equal, trained(tandem.compile), trained(lambda f: f))))

    def test_an_optimiser_that_asks_which_step_it_is_runs_as_it_is(self):
        def trained(compile):
            module = network()
            optimizer = torch.optim.RAdam(module.parameters(), lr=1e-2)
            step = compile(whole_step(module, optimizer))
            for i in range(STEPS):
                step(torch.full((8, 6), float(i)))
            return list(module.parameters())

        self.assertTrue(all(map(torch.equal, trained(tandem.compile), trained(lambda f: f))))
        self.assertGreater(tandem.counters()["ran_uncompiled"], STEPS // 2)
        self.assertNotIn("item", vars(torch.Tensor))

    def test_numbers_of_an_optimiser_of_the_users_own(self):
        class Own(torch.optim.Optimizer):
            def __init__(self, parameters, use):
                super().__init__(parameters, {})
                self.use = use

            @torch.no_grad()
            def step(self):
                for p in self.param_groups[0]["params"]:
                    state = self.state[p]
                    if not state:
                        state["step"] = torch.zeros(())
                    state["step"] += 1
                    p.copy_(self.use(p, state["step"].item()))

        uses = {
            "right of operators": lambda p, n: p * n + 0.5 / n,
            "left of operators": lambda p, n: n * p - (n - 3) * p,
            "a divisor of nothing": lambda p, n: n / (p + 2) + (2 - n) ** 2,
            "alpha": lambda p, n: torch.add(p, p, alpha=n),
            "rounding of Python's": lambda p, n: p * (n / 3) ** 0.5 * (0.1 * n + 0.2),
            "another module's": lambda p, n: p * math.sqrt(n),
            "a branch": lambda p, n: p * 2 if n > 3 else p * 0.5,
            "an integer": lambda p, n: p * int(n),
            "text": lambda p, n: p * len(f"{n:.20f}"),
            "a tensor": lambda p, n: p * torch.tensor(n),
            "full": lambda p, n: torch.full((3,), n),
            "modulo": lambda p, n: p + n % 2,
            "max": lambda p, n: p + max(n, 3.0),
            "a key": lambda p, n: p + {1.0: 5.0}.get(n, n),
        }
        for name, use in uses.items():
            for watched in (True, False):
                with self.subTest(name, watched=watched):

                    def trained(compile, use=use):
                        p = torch.nn.Parameter(torch.linspace(0.1, 1, 3))
                        own = Own([p], use)
                        step = compile(lambda: own.step())
                        for _ in range(6):
                            step()
                        return p

                    self.assertTrue(
                        torch.equal(trained(tandem.compile(watched_calls=watched)), trained(lambda f: f))
                    )
        self.assertEqual(tandem.counters().get("promise_broken", 0), 0)

    def test_steps_that_dynamo_hands_over(self):
        def trained(compile, make):
            module = network()
            optimizer = make(module.parameters())
            step = compile(lambda: optimizer.step())
            for i in range(5):
                optimizer.zero_grad()
                module(torch.full((8, 6), float(i))).square().mean().backward()
                step()
            return list(module.parameters())

        for make, expected in (
            (SGD["nesterov"], lambda f: f),
            (ADAM["AdamW"], torch.compile(backend="eager")),
        ):
            torch._dynamo.reset()
            wanted = trained(expected, make)
            torch._dynamo.reset()
            self.assertTrue(all(map(torch.equal, trained(torch.compile(backend="tandem"), make), wanted)))
        self.assertEqual(tandem.counters().get("ran_uncompiled", 0), 0)

    def test_gradients_that_gather_over_steps(self):
        self.expect_equal(SGD["plain"], gathering_step)


if __name__ == "__main__":
    unittest.main()
