"""The judge of libraries, on cases that need none of them."""

import unittest

import torch
from libraries import document
from libraries.compare import Difference
from libraries.environments import REQUIREMENTS
from libraries.judge import EAGER_FAILS, EQUAL, ERROR, judge, reasons_in
from libraries.registry import cases


def once(door):
    function = door(lambda x: x.sin())
    for step in range(4):
        yield {"y": function(torch.full((3,), float(step)))}


def wrong_where_compiled(door):
    for seen in once(door):
        yield {"y": seen["y"] + (door.name != "eager")}


def failing_where_compiled(door):
    if door.name != "eager":
        raise ValueError("only there")
    yield from once(door)


def failing(door):
    raise ValueError("everywhere")
    yield


class Libraries(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        cases()  # those of the libraries are entered here, once
        self.added = {"torch.once": once, "torch.wrong": wrong_where_compiled, "torch.failing": failing}
        self.added["torch.failing_there"] = failing_where_compiled
        cases().update(self.added)
        self.addCleanup(lambda: [cases().pop(name) for name in self.added])

    def test_every_case_has_an_environment(self):
        self.assertEqual({name.split(".")[0] for name in cases()}, set(REQUIREMENTS))

    def test_verdicts(self):
        for name, verdict in (
            ("once", EQUAL),
            ("wrong", "different"),
            ("failing", EAGER_FAILS),
            ("failing_there", ERROR),
        ):
            self.assertEqual(judge(f"torch.{name}", "compile").verdict, verdict, name)

    def test_calls_are_counted(self):
        for door in ("compile", "dynamo"):
            record = judge("torch.once", door)
            self.assertEqual((record.verdict, record.calls, record.uncompiled), (EQUAL, 4, 0), door)

    def test_differences(self):
        def apart(a, b):
            found = Difference([{"x": torch.tensor(a)}], [{"x": torch.tensor(b)}])
            return found.largest, found.is_rounding

        self.assertEqual(apart([1.0, float("nan")], [1.0, float("nan")]), (0.0, True))
        self.assertEqual(apart([1, 2], [1, 3]), (float("inf"), False))
        self.assertEqual(apart([1.0, float("nan")], [1.0, 2.0]), (float("inf"), False))
        self.assertTrue(apart([1.0], [1.0 + 1e-6])[1])
        self.assertFalse(apart([1.0], [1.1])[1])
        self.assertFalse(Difference([], [{"x": torch.ones(1)}]).is_rounding)

    def test_reasons_say_nothing_of_folders(self):
        log = [
            "[tandem 1] compile: f: runs as it is: aten::item (called at /a/site-packages/b/c.py:3); do this",
            "other",
        ]
        self.assertEqual(reasons_in(log), ["aten::item (called at b/c.py:3)"])

    def test_page(self):
        page = document.rendered([judge("torch.once", "compile"), judge("torch.wrong", "compile")])
        self.assertIn("| torch.once | compile | equal | 0 of 4 | 0 |", page)
        self.assertIn("1. different: step 1: y", page)


if __name__ == "__main__":
    unittest.main()
