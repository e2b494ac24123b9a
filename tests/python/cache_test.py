"""A Python program's compiled code is remembered where the environment says, and found there
by the next process."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# Compares a step with what the function itself gives, and says how the compile went: state, joint traces,
# tensors that hooks of the caller's were given, reason.
STEP = """
import contextlib
import torch, tandem
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

packed = []

def plain(x):
    return (x * 2).tanh().sum()

def step(function=plain, around=contextlib.nullcontext()):
    tandem.reset()
    packed.clear()
    x, y = (torch.linspace(-1, 1, 3, requires_grad=True) for _ in range(2))
    compiled = tandem.compile(function)
    with around:
        result = compiled(x)
    result.backward()
    counted = tandem.counters()["joint_trace"]
    function(y).backward()
    assert torch.equal(x.grad, y.grad), (x.grad, y.grad)
    explanation = tandem.explain(compiled, x)
    print(explanation.cache_state, counted, len(packed), explanation.bypass_reason, sep="|")

assert tandem.CacheOptions().directory is None
"""

# Code that has neither a name nor a version.
UNNAMED = """
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0] * 5

def hooked(x):
    middle = x * 2
    middle.register_hook(lambda gradient: gradient * 3)
    return middle.tanh().sum()

def halved(x):
    with saved_tensors_hooks(lambda t: t * 0.5, lambda t: t):
        return plain(x)

step(lambda x: Cube.apply(x * 2).sum())
step(hooked)
step(halved)
"""

# Hooks of the caller's: what they are given is put aside, or doubled and halved again.
AROUND = """
def pack_with(pack):
    return lambda tensor: (packed.append(tensor), pack(tensor))[1]

step(around=saved_tensors_hooks(pack_with(lambda tensor: tensor.numpy(force=True).copy()), torch.from_numpy))
step(around=saved_tensors_hooks(pack_with(lambda tensor: tensor * 2), lambda tensor: tensor / 2))
"""

# A backward behind the last one: eager refuses that of a gather, and not that of a sum.
TWICE = """
def twice(function):
    tandem.reset()
    x = torch.ones(3, requires_grad=True)
    result = tandem.compile(function)(x)
    result.backward(torch.ones_like(result))
    try:
        result.backward(torch.ones_like(result))
        print(tandem.counters()["joint_trace"], "accepted", sep="|")
    except RuntimeError as error:
        print(tandem.counters()["joint_trace"], str(error)[:45], sep="|")

twice(lambda x: x[[0, 0]])
twice(lambda x: x + 1)
"""

# Leaves lie elsewhere in each process.
CLEARED = """
leaves = [torch.ones(size, requires_grad=True) for size in range(1, 30)]

def give_gradients():
    for leaf in leaves:
        leaf.grad = torch.ones_like(leaf)

def clear(x):
    for leaf in leaves:
        leaf.grad = None
    return (x * 2).sum()

compiled = tandem.compile(clear)
give_gradients()
compiled(torch.ones(3, requires_grad=True))
assert all(leaf.grad is None for leaf in leaves)
give_gradients()
print(tandem.explain(compiled, torch.ones(3, requires_grad=True)).cache_state)
"""


class Cache(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work, self.cache = Path(folder.name, "work"), Path(folder.name, "cache")
        self.work.mkdir()

    def run_steps(self, steps: str = "step()") -> list[list[str]]:
        """What steps in a new process print; its working folder stays empty."""
        environment = {**os.environ, "TANDEM_CACHE": "on", "TANDEM_CACHE_DIR": str(self.cache)}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", STEP + steps],
            cwd=self.work,
            env=environment,
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(self.work.iterdir()), [])
        return [line.split("|") for line in done.stdout.splitlines()]

    def entries(self) -> list[Path]:
        return [file for file in self.cache.glob("entries/*/*") if file.is_file()]

    def test_the_second_process_hits_and_the_working_folder_stays_empty(self):
        self.assertEqual(self.run_steps(), [["miss", "1", "0", ""]])
        self.assertEqual(len(self.entries()), 1)
        self.assertEqual(self.run_steps(), [["hit", "0", "0", ""]])

    def test_m13_m18_code_without_name_and_version_is_not_cached(self):
        steps = self.run_steps(UNNAMED)
        reasons = [
            "CubeBackward",
            "registers a hook on a tensor",
            "hooks on saved tensors are set",
        ]
        for (state, traces, _, said), reason in zip(steps, reasons, strict=True):
            self.assertEqual((state, traces), ("bypass", "1"))
            self.assertIn(reason, said)
        self.assertEqual(self.entries(), [])

    def test_a_checkpoint_is_found_by_the_next_process(self):
        steps = "step(lambda x: checkpoint(plain, x, use_reentrant=False))"
        for state in ("miss", "hit"):
            self.assertEqual(self.run_steps(steps), [[state, "1", "0", ""]])

    def test_m18_hooks_around_a_call_work_on_what_code_from_the_cache_saves(self):
        self.assertEqual(self.run_steps(), [["miss", "1", "0", ""]])
        self.assertEqual(self.run_steps(AROUND), [["hit", "0", "1", ""]] * 2)

    def test_a_second_backward_is_refused_of_code_from_the_cache_too(self):
        for traces in ("1", "0"):
            self.assertEqual(
                self.run_steps(TWICE),
                [[traces, "Trying to backward through the graph a second"], [traces, "accepted"]],
            )

    def test_a_function_that_clears_gradients_is_found_by_the_next_process(self):
        self.assertEqual([self.run_steps(CLEARED) for _ in range(3)], [[["miss"]], [["hit"]], [["hit"]]])


if __name__ == "__main__":
    unittest.main()
