"""What goes wrong, and how it is said; threads and signals."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import unittest

import torch
from engine_warnings import engine_warnings

import tandem


class Errors(unittest.TestCase):
    def setUp(self):
        self.x = torch.randn(3, requires_grad=True)

    def here(self, offset):
        return f"errors_test.py:{sys._getframe(1).f_lineno + offset}"

    def refused(self, function, words):
        """Raises where it must be compiled; runs as it is elsewhere, and says the same once."""
        with self.assertRaisesRegex(tandem.UnsupportedError, words) as caught:
            tandem.compile(function, must_compile=True)(self.x)
        before = tandem.counters()["ran_uncompiled"]
        compiled = tandem.compile(function)
        with engine_warnings() as said, contextlib.redirect_stdout(io.StringIO()):
            for _ in range(3):
                want, got = function(self.x), compiled(self.x)
                self.assertTrue(got is want is None or torch.equal(got, want))
        self.assertEqual(tandem.counters()["ran_uncompiled"] - before, 3)
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said[0], words)
        self.assertIn(function.__qualname__, said[0])
        return str(caught.exception)

    def test_the_family(self):
        self.assertTrue(issubclass(tandem.Error, RuntimeError))
        for child in (tandem.UnsupportedError, tandem.ContractError, tandem.CacheError):
            self.assertTrue(issubclass(child, tandem.Error))
            self.assertEqual(child.__module__, "tandem")

    def test_data_dependence_names_the_operator_and_the_line(self):
        said = self.refused(lambda x: x.nonzero(), "aten::nonzero")
        self.assertIn(self.here(-1), said)

    def test_bool_of_a_fake(self):
        said = self.refused(lambda x: x if x.sum() > 0 else -x, "is_nonzero.*depend on the data")
        self.assertIn(self.here(-1), said)

    def test_printing_a_fake(self):
        said = self.refused(lambda x: print(x), "depend on the data")
        self.assertIn(self.here(-1), said)

    def test_reading_memory(self):
        self.refused(lambda x: x + x.detach().numpy().sum(), "memory of a tensor|numpy")
        self.refused(lambda x: x + sum(x.tolist()), "depend on the data|memory of a tensor")
        self.refused(lambda x: x + float(x[0]), "item")

    def test_reading_memory_in_a_backward(self):
        class Listed(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                return torch.tensor(gradient.tolist()) * 2

        for watched in (True, False):
            compiled, x = (
                tandem.compile(lambda x: Listed.apply(x), watched_calls=watched),
                torch.ones(2, requires_grad=True),
            )
            self.assertIn(
                "backward of its own reads the memory of a tensor", tandem.explain(compiled, x).eager_reason
            )
            compiled(x).sum().backward()
            self.assertTrue(torch.equal(x.grad, torch.full((2,), 2.0)))

    def test_calls_that_an_argument_leaves_to_the_original_are_counted(self):
        for watched in (True, False):
            compiled, before = (
                tandem.compile(lambda x, rest: x + next(rest), watched_calls=watched),
                tandem.counters().get("ran_uncompiled", 0),
            )
            for i in range(3):
                self.assertTrue(torch.equal(compiled(torch.ones(2), iter([1, 2])), torch.full((2,), 2.0)))
                self.assertEqual(tandem.counters()["ran_uncompiled"], before + i + 1)

    def test_catching_the_refusal_does_not_hide_it(self):
        def careful(x):
            try:
                return x * x.sum().item()
            except RuntimeError:
                return x

        self.refused(careful, "item")

    def test_errors_of_the_function_arrive_as_themselves(self):
        def fails(x):
            raise KeyError("mine")

        try:
            tandem.compile(fails)(self.x)
            self.fail("nothing was raised")
        except KeyError as error:
            self.assertEqual(error.args, ("mine",))
            self.assertIn("fails", [frame.name for frame in traceback.extract_tb(error.__traceback__)])

    def test_a_function_that_fails_has_done_what_it_did_before(self):
        def fails(x, names):
            names.append("begun")
            x.add_(1)
            raise KeyError("mine")

        compiled, x, names = tandem.compile(fails), torch.ones(2), []
        for count in (1, 2):
            with self.assertRaises(KeyError):
                compiled(x, names)
            self.assertEqual((x.tolist(), len(names)), ([1.0 + count] * 2, count))

    def test_errors_of_torch_arrive_as_in_eager(self):
        for function in (lambda x: x @ torch.ones(5), lambda x: x[7], lambda x: x.view(2, 2)):
            with self.assertRaises(Exception) as eager:
                function(self.x)
            with self.assertRaises(type(eager.exception)) as compiled:
                tandem.compile(function)(self.x)
            self.assertEqual(str(compiled.exception).splitlines()[0], str(eager.exception).splitlines()[0])

    def test_an_error_that_the_function_handles_is_handled(self):
        def careful(x):
            try:
                return x @ torch.ones(5)
            except RuntimeError:
                return x * 2

        self.assertTrue(torch.equal(tandem.compile(careful)(self.x), self.x * 2))

    def test_inputs_are_unchanged_after_a_failed_compile(self):
        def writes(x):
            x.mul_(2)
            return x.nonzero()

        x = torch.ones(3)
        version = x._version
        with self.assertRaises(tandem.UnsupportedError):
            tandem.compile(writes, must_compile=True)(x)
        self.assertTrue(torch.equal(x, torch.ones(3)))
        self.assertEqual(x._version, version)
        tandem.compile(writes)(x)
        self.assertTrue(torch.equal(x, torch.full((3,), 2.0)))

    def test_what_a_program_keeps_has_its_data(self):
        shelf = {"things": []}

        def keep(x):
            shelf["things"].append(x * 2)
            return x + 1

        tandem.compile(keep)(self.x)
        self.assertTrue(torch.equal(shelf["things"][0], self.x * 2))

    def test_errors_of_a_compiled_backward_are_tandems(self):
        def bad_compiler(graph, context):
            return lambda inputs: inputs[:0] if context.stage == "backward" else graph.run(inputs)

        result = tandem.compile(lambda x: x.sin(), fw_compiler=bad_compiler)(self.x)
        with self.assertRaises(tandem.Error):
            result.sum().backward()

    def test_values_written_before_the_backward(self):
        x = torch.ones(3, requires_grad=True)
        y = x * 1
        result = tandem.compile(lambda y: y.sin())(y)
        with torch.no_grad():
            y.add_(1)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            result.sum().backward()


class Threads(unittest.TestCase):
    def test_compiled_code_runs_without_the_interpreters_lock(self):
        x = torch.randn(600, 600)

        def work(x):
            for _ in range(20):
                x = x @ x
                x = x / x.norm()
            return x

        compiled = tandem.compile(work)
        compiled(x)
        ticks, stop = 0, threading.Event()

        def count():
            nonlocal ticks
            while not stop.is_set():
                ticks += 1
                time.sleep(0.0005)

        counter = threading.Thread(target=count)
        counter.start()
        interval = sys.getswitchinterval()
        sys.setswitchinterval(10)  # nobody takes the lock from a thread that does not give it
        try:
            before = ticks
            for _ in range(5):
                compiled(x)
            during = ticks - before
        finally:
            sys.setswitchinterval(interval)
            stop.set()
            counter.join()
        self.assertGreater(during, 5)

    def test_threads_share_a_compiled_function(self):
        compiled, wrong = tandem.compile(lambda x, n: (x * n).sin()), []

        def work(seed):
            generator = torch.Generator().manual_seed(seed)
            for n in range(20):
                x = torch.randn(2 + n % 3, generator=generator, requires_grad=True)
                y = compiled(x, n % 4)
                y.sum().backward()
                want = (x * (n % 4)).cos() * (n % 4)
                if not torch.allclose(x.grad, want):
                    wrong.append((seed, n))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_interrupts_reach_a_function_that_is_traced(self):
        program = """
import torch, tandem, time
def slow(x):
    print("tracing", flush=True)
    while True:
        x = x + 1
        time.sleep(0.001)
try:
    tandem.compile(slow)(torch.ones(1))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
        child = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=os.environ
        )
        self.assertEqual(child.stdout.readline(), "tracing\n")
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.communicate(timeout=60)[0], "interrupted\n")
        self.assertEqual(child.returncode, 0)


if __name__ == "__main__":
    unittest.main()
