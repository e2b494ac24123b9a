"""What lies outside of Python's objects: programs that ask for it run as they are, and it happens once a
call as in eager."""

import contextlib
import datetime
import io
import logging
import os
import random
import sys
import tempfile
import time
import unittest
import uuid
from pathlib import Path

import numpy
import torch

import tandem

log = logging.getLogger("tandem.world_test")


class World(unittest.TestCase):
    def setUp(self):
        tandem.reset()
        self.x = torch.ones(2)

    def runs_as_it_is(self, function, words):
        for watched in (False, True):
            self.assertIn(
                words, tandem.explain(tandem.compile(function, watched_calls=watched), self.x).eager_reason
            )

    def test_clocks(self):
        self.runs_as_it_is(lambda x: x * time.time(), "time.time")
        self.runs_as_it_is(lambda x: x * time.perf_counter(), "time.perf_counter")
        self.runs_as_it_is(lambda x: x * datetime.datetime.now().second, "datetime.now")

    def test_a_clock_is_read_at_every_call(self):
        compiled = tandem.compile(lambda x: x.double() * time.perf_counter(), watched_calls=False)
        seen = [compiled(self.x)[0].item() for _ in range(5)]
        self.assertEqual(sorted(set(seen)), seen)

    def test_random_numbers_that_are_not_torchs(self):
        self.runs_as_it_is(lambda x: x * random.random(), "random module")
        self.runs_as_it_is(lambda x: x * float(numpy.random.rand()), "numpy.random")
        self.runs_as_it_is(lambda x: x * (uuid.uuid4().int % 7), "os.urandom")
        own = random.Random(3)
        self.runs_as_it_is(lambda x: x * own.random(), "random module")

    def test_prints_come_once_a_call(self):
        def shown(x):
            print("shown")
            return x * 2

        self.runs_as_it_is(shown, "prints")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            compiled = tandem.compile(shown, watched_calls=False)
            for _ in range(4):
                self.assertEqual(compiled(self.x).tolist(), [2, 2])
        self.assertEqual(said.getvalue(), "shown\n" * 4)

    def test_a_program_that_prints_once_is_compiled_at_its_second_call(self):
        state = {"first": True}

        def shown(x):
            if state["first"]:
                print("shown")
                state["first"] = False
            return x * 2

        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            compiled = tandem.compile(shown, watched_calls=False)
            for _ in range(4):
                self.assertEqual(compiled(self.x).tolist(), [2, 2])
        self.assertEqual((said.getvalue(), tandem.explain(compiled, self.x).eager_reason), ("shown\n", ""))

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "scale")

            def read(x):
                return x * float(file.read_text())

            def written(x):
                with open(file, "a") as to:
                    to.write("1")
                return x * 2

            file.write_text("2")
            compiled = tandem.compile(read, watched_calls=False)
            self.assertEqual(compiled(self.x).tolist(), [2, 2])
            file.write_text("3")
            self.assertEqual(compiled(self.x).tolist(), [3, 3])
            file.write_text("")
            compiled = tandem.compile(written, watched_calls=False)
            for _ in range(4):
                compiled(self.x)
            self.assertEqual(file.read_text(), "1111")
            exists = tandem.compile(lambda x: x * (2 if os.path.exists(file) else 1), watched_calls=False)
            self.assertEqual(exists(self.x).tolist(), [2, 2])
            file.unlink()
            self.assertEqual(exists(self.x).tolist(), [1, 1])

    def test_modules_that_are_imported_on_the_way(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "world_test_module.py").write_text(
                "import os, time\nwhen, here, made = time.time(), os.getcwd(), open(__file__).read()\n"
            )
            sys.path.insert(0, folder)

            def imports(x):
                import world_test_module

                return x * len(world_test_module.made)

            try:
                compiled = tandem.compile(imports, watched_calls=False)
                self.assertEqual(compiled(self.x).tolist(), imports(self.x).tolist())
                self.assertEqual(tandem.explain(compiled, self.x).eager_reason, "")
            finally:
                sys.path.remove(folder)

    def test_log_messages(self):
        def logged(x):
            log.warning("logged")
            return x * 2

        compiled = tandem.compile(logged, watched_calls=False)
        with self.assertLogs(log) as said:
            for _ in range(3):
                compiled(self.x)
        self.assertEqual(len(said.output), 3)

    def test_a_program_cannot_catch_the_refusal(self):
        def careful(x):
            try:
                return x * time.time()
            except Exception:
                return x * 0

        self.runs_as_it_is(careful, "time.time")
        self.assertNotEqual(tandem.compile(careful, watched_calls=False)(self.x)[0].item(), 0)

    def test_must_compile_refuses(self):
        with self.assertRaisesRegex(tandem.UnsupportedError, "time.time"):
            tandem.compile(lambda x: x * time.time(), must_compile=True)(self.x)


if __name__ == "__main__":
    unittest.main()
