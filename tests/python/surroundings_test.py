"""A change of anything that a compiled function reads is seen by the very next call, whether calls
are watched or not."""

import unittest

import surroundings_containers
import surroundings_programs
import torch

import tandem


class Surroundings(unittest.TestCase):
    def check(self, program, change, watched):
        x = torch.tensor([1.0, -2.0, 3.0]).reshape(3, 1).requires_grad_()

        def seen(function):
            y = function(x)
            gradient = torch.autograd.grad(y.sum(), x)[0].tolist() if y.requires_grad else None
            return y.tolist(), y.dtype, gradient

        tandem.reset()
        compiled, before = tandem.compile(program, watched_calls=watched), seen(program)
        for _ in range(2):
            self.assertEqual(seen(compiled), before)
        self.assertEqual(tandem.explain(compiled, x).eager_reason, "")
        with change():
            changed = seen(program)
            self.assertNotEqual(changed, before, "nothing was changed")
            for _ in range(3):
                self.assertEqual(seen(compiled), changed)
        for _ in range(2):
            self.assertEqual(seen(compiled), seen(program))

    def test_changes_are_seen_at_the_next_call(self):
        for programs in (*surroundings_programs.PROGRAMS, *surroundings_containers.PROGRAMS):
            for watched in (False, True):
                for name, program, change in programs():
                    with self.subTest(name, watched=watched):
                        self.check(program, change, watched)


if __name__ == "__main__":
    unittest.main()
