"""What a trace changed in Python's objects is put back, to any depth, and the program keeps its
state as eager does."""

import sys
import tempfile
import unittest
from pathlib import Path

import state_elsewhere
import state_programs as programs
import torch

import tandem


class State(unittest.TestCase):
    def setUp(self):
        tandem.reset()

    def outcome(self, make, compile):
        programs.forget()
        function, extra, kept = make()
        compiled, results = compile(function), []
        for call in range(5):
            results.append(programs.seen(compiled(torch.full((1, 1), call + 1.0), *extra)))
            results.append(programs.seen(kept))
        return results

    def test_state_is_kept_as_in_eager(self):
        for make in programs.PROGRAMS + state_elsewhere.PROGRAMS:
            for watched in (True, False):
                with self.subTest(make.__name__, watched=watched):
                    compiled = self.outcome(
                        make,
                        lambda function, watched=watched: tandem.compile(function, watched_calls=watched),
                    )
                    self.assertEqual(compiled, self.outcome(make, lambda function: function))

    def test_what_is_changed_is_named(self):
        for make, words in (
            (programs.object_given, "attribute keys of class Layer"),
            (programs.helper_counts, "the list calls"),
            (programs.enclosing_variable_of_a_helper, "the variable calls of an enclosing function"),
            (programs.globals_of_helpers, "the global total"),
            (programs.slots, "attribute count of class Slotted"),
            (programs.forward_hook, "the dict kept"),
            (
                programs.attributes_of_a_class_and_below_a_module,
                "attribute instances_called of class Counting",
            ),
        ):
            with self.subTest(make.__name__):
                function, extra, _ = make()
                self.assertIn(words, tandem.explain(function, torch.ones(1, 1), *extra).eager_reason)

    def test_must_compile_refuses_and_changes_nothing(self):
        function, extra, cache = programs.object_given()
        with self.assertRaisesRegex(tandem.UnsupportedError, "keys of class Layer"):
            tandem.compile(function, must_compile=True)(torch.ones(1, 1), *extra)
        self.assertEqual(cache.layers[0].keys.shape, (0, 1))

    def test_what_a_module_registers_when_it_is_imported_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "plugin_of_state_test.py").write_text(
                "import state_programs\n"
                "def double(x): return x * 2\n"
                "state_programs.registry['double'] = double\n"
            )
            sys.path.insert(0, folder)
            try:
                compiled = tandem.compile(programs.uses_plugin)
                for _ in range(3):
                    self.assertTrue(torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0)))
            finally:
                sys.path.remove(folder)

    def test_equal_numbers_put_in_place_are_no_change(self):
        class Sized(torch.nn.Module):
            shape, scale = torch.Size([3]), 0.5

            def forward(self, x):
                self.shape, self.scale = x.shape, float(str(0.5))
                return x * self.scale

        sized, x = Sized(), torch.ones(3)
        sized(x)
        compiled = tandem.compile(sized)
        self.assertTrue(torch.equal(compiled(x), sized(x)))
        self.assertEqual(tandem.explain(compiled, x).eager_reason, "")


if __name__ == "__main__":
    unittest.main()
