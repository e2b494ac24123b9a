"""A Python program's compiled code is remembered where the environment says, and found there by the next process."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = """
import torch, tandem
f = tandem.compile(lambda x: (x * 2).tanh().sum())
x = torch.ones(3, requires_grad=True)
f(x).backward()
assert tandem.CacheOptions().directory is None
print(tandem.explain(f, x).cache_state, tandem.counters()["joint_trace"])
"""


class Cache(unittest.TestCase):
    def run_in(self, folder: str) -> str:
        """What the program prints, run in an empty working folder beside its cache."""
        work, cache = Path(folder, "work"), Path(folder, "cache")
        work.mkdir(exist_ok=True)
        environment = {**os.environ, "TANDEM_CACHE": "on", "TANDEM_CACHE_DIR": str(cache)}
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], cwd=work, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(work.iterdir()), [])
        self.assertTrue((cache / "entries").is_dir())
        return done.stdout.strip()

    def test_the_second_process_hits_and_the_working_folder_stays_empty(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_in(folder), "miss 1")
            self.assertEqual(self.run_in(folder), "hit 0")


if __name__ == "__main__":
    unittest.main()
