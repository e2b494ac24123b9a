"""What a program does not read may change without a new trace; what comes again finds its compiled code; what
is gone is let go."""

import gc
import types
import unittest
import weakref

import torch

import tandem

SCALE, loss = 2.0, None


class Trainer:
    def __init__(self):
        self.model, self.scale, self.steps, self.history, self.name = (
            torch.nn.Linear(2, 2),
            2.0,
            0,
            [],
            "trainer",
        )
        self.optimiser = torch.optim.SGD(self.model.parameters(), 0.1)

    def step(self, x):
        return self.model(x).square().mean() * self.scale


class Precision(unittest.TestCase):
    def setUp(self):
        tandem.reset()
        self.x = torch.ones(2)

    def traces(self):
        return tandem.counters().get("trace", 0)

    def test_attributes_that_code_does_not_mention(self):
        trainer = Trainer()
        compiled = tandem.compile(trainer.step, watched_calls=False)
        for _ in range(5):
            trainer.optimiser.zero_grad()
            compiled(self.x).backward()
            trainer.optimiser.step()
            trainer.steps += 1
            trainer.history.append(trainer.steps)
            trainer.optimiser.param_groups[0]["lr"] *= 0.5
            setattr(trainer, f"new{trainer.steps}", 1)
        self.assertLessEqual(self.traces(), 2)  # which leaves have gradients is seen as well
        self.assertTrue(compiled._callable.knows(self.x))

    def test_globals_that_code_does_not_load(self):
        global loss
        output = types.SimpleNamespace(loss=3.0)
        compiled = tandem.compile(lambda x: x * SCALE * output.loss, watched_calls=False)
        for call in range(5):
            loss = compiled(self.x)
        self.assertEqual(self.traces(), 1)

    def test_a_name_in_the_text_of_getattr_is_that_name(self):
        config = types.SimpleNamespace(scale=2.0, other=0)
        compiled = tandem.compile(
            lambda x: x * getattr(config, "scale", 1.0) * (2 if hasattr(config, "missing") else 1),
            watched_calls=False,
        )
        for config.other in range(4):
            compiled(self.x)
        self.assertEqual(self.traces(), 1)
        config.missing = True
        self.assertEqual(compiled(self.x).tolist(), [4 * 1.0] * 2)
        self.assertEqual(self.traces(), 2)

    def test_equal_numbers_and_strings_in_place_of_others(self):
        config = types.SimpleNamespace(scale=1000.5, mode="a b", shape=(1, "c d"))
        compiled = tandem.compile(
            lambda x: x * config.scale if config.mode == "a b" and config.shape else x, watched_calls=False
        )
        for _ in range(3):
            config.scale, config.mode, config.shape = (
                float("1000.5"),
                " ".join("ab"),
                (int("1"), " ".join("cd")),
            )
            compiled(self.x)
        self.assertEqual(self.traces(), 1)

    def test_train_and_eval_come_again(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))
        compiled = tandem.compile(model, watched_calls=False)
        for _ in range(3):
            for mode in (True, False):
                model.train(mode)
                torch.manual_seed(0)
                seen = compiled(self.x)
                torch.manual_seed(0)
                self.assertTrue(torch.equal(seen, model(self.x)))
        self.assertEqual(self.traces(), 2)

    def test_a_flag_that_comes_again(self):
        config = types.SimpleNamespace(scale=1)
        compiled = tandem.compile(lambda x: x * config.scale, watched_calls=False)
        for _ in range(4):
            for config.scale in (1, 2):
                self.assertEqual(compiled(self.x).tolist(), [config.scale] * 2)
        self.assertEqual(self.traces(), 2)

    def test_what_was_replaced_is_let_go(self):
        holder = types.SimpleNamespace(model=torch.nn.Linear(2, 2), config=Trainer(), items=[torch.ones(2)])
        compiled = tandem.compile(
            lambda x: holder.model(x) * holder.config.scale + holder.items[0], watched_calls=False
        )
        compiled(self.x)
        gone = [
            weakref.ref(thing)
            for thing in (holder.model, holder.model.weight, holder.config, holder.items[0])
        ]
        holder.model, holder.config, holder.items = torch.nn.Linear(2, 2), Trainer(), [torch.ones(2)]
        gc.collect()
        self.assertEqual([ref() for ref in gone], [None] * 4)
        self.assertTrue(torch.equal(compiled(self.x), holder.model(self.x) * 2 + 1))

    def test_a_circle_through_what_is_read_is_collected(self):
        class Circle:
            __slots__ = ("scale", "compiled", "__weakref__")

            def __init__(self):
                self.scale = 2.0
                self.compiled = tandem.compile(lambda x: x * self.scale, watched_calls=False)

        circle = Circle()
        circle.compiled(self.x)
        gone = weakref.ref(circle)
        del circle
        gc.collect()
        self.assertIsNone(gone())

    def test_an_object_at_the_place_of_another(self):
        compiled = tandem.compile(lambda x, o: x * o.scale, watched_calls=False)
        for scale in range(20):
            given = types.SimpleNamespace(scale=scale)
            self.assertEqual(compiled(self.x, given).tolist(), [scale] * 2)
            del given
        holder = types.SimpleNamespace()
        reading = tandem.compile(lambda x: x * holder.inner.scale, watched_calls=False)
        for scale in range(20):
            holder.inner = None
            holder.inner = types.SimpleNamespace(scale=scale)
            self.assertEqual(reading(self.x).tolist(), [scale] * 2)


if __name__ == "__main__":
    unittest.main()
