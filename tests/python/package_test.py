"""The wheel, as somebody sees it who installs it: built from this repository, imported by a fresh Python that
knows nothing of the build folder."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TANDEM_BUILD_DIR", SOURCE / "build"))
TORCH = Path(find_spec("torch").origin).parent


def cached(name: str) -> str:
    """A setting of the build folder."""
    return re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)[1]


def install(target: Path) -> None:
    """Installs the wheel into a folder; it is built in the build folder, where everything is compiled already
    and which keeps its settings."""
    (BUILD / ".skbuild-info.json").unlink(
        missing_ok=True
    )  # what another installation wrote there would have the folder emptied
    settings = {
        "build-dir": BUILD,
        "cmake.args": f"-G{cached('CMAKE_GENERATOR')}",
        "cmake.build-type": cached("CMAKE_BUILD_TYPE"),
        "cmake.define.TANDEM_TESTS": "ON",
    }
    flags = [f"--config-settings={key}={value}" for key, value in settings.items()]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--verbose",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        target,
        *flags,
        SOURCE,
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.home = Path(scratch.name)
        cls.site = cls.home / "site"
        install(cls.site)

    def run_alone(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs a command that sees the installed package and nothing else of ours."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TANDEM_", "LD_", "PYTHON"))
        }
        environment |= {"PYTHONPATH": str(self.site), "TANDEM_CACHE_DIR": str(self.home / "cache")}
        return subprocess.run(command, env=environment, cwd=self.home, capture_output=True, text=True)

    def run_python(self, program: str) -> str:
        done = self.run_alone(sys.executable, "-c", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_holds_the_package_and_no_path_of_this_machine(self) -> None:
        package = self.site / "tandem"
        names = {str(path.relative_to(package)) for path in package.rglob("*")}
        sources = {path.name for path in (SOURCE / "python" / "tandem").glob("*.py*")}
        self.assertLessEqual(
            {"py.typed", "_build.py", "bin/tandem", "data/README.md", "bench/torch_peers.py"} | sources, names
        )
        binaries = [package / "bin" / "tandem", *package.glob("_C.*.so"), *package.glob("libtandem.so*")]
        self.assertEqual(len(binaries), 3, binaries)
        for binary in binaries:
            headers = subprocess.run(
                ["readelf", "-d", binary], check=True, capture_output=True, text=True
            ).stdout
            places = re.search(r"(?:RUNPATH|RPATH).*\[(.*)\]", headers)[1].split(":")
            self.assertTrue(all(place.startswith("$ORIGIN") for place in places), (binary.name, places))

    def test_compiles_a_function(self) -> None:
        self.run_python(
            "import tandem, torch\n"
            "f = lambda x, w: (x @ w).tanh().sum()\n"
            "x, w = torch.randn(3, 4), torch.randn(4, 5, requires_grad=True)\n"
            "results = [(y := g(x, w), *torch.autograd.grad(y, w)) for g in (f, tandem.compile(f))]\n"
            "assert all(map(torch.equal, *results)), results\n"
            "assert tandem.counters()['compile_backward'] == 1, tandem.counters()\n"
            f"assert tandem.__file__.startswith({str(self.site)!r}), tandem.__file__\n"
        )

    def test_torch_compile_finds_the_backend_without_an_import(self) -> None:
        self.run_python(
            "import sys, torch\n"
            "f = lambda x: (x * 2).sin().sum()\n"
            "x = torch.randn(3, 4, requires_grad=True)\n"
            "assert 'tandem' not in sys.modules\n"
            "compiled = torch.compile(f, backend='tandem')\n"
            "results = [(y := g(x), *torch.autograd.grad(y, x)) for g in (f, compiled)]\n"
            "assert sys.modules['tandem'].counters()['compile_backward'] == 1\n"
            "assert all(map(torch.equal, *results)), results\n"
        )

    def test_module_is_the_command_line(self) -> None:
        done = self.run_alone(sys.executable, "-m", "tandem", "doctor")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for finding in (
            "Everything necessary is there",
            str(self.site / "tandem" / "data"),
            f"in {sys.executable}",
        ):
            self.assertIn(finding, done.stdout)
        wrong = self.run_alone(sys.executable, "-m", "tandem", "no-such-command")
        self.assertNotEqual(wrong.returncode, 0)
        self.assertNotIn("Traceback", wrong.stderr)

    def test_program_finds_torch_beside_the_package(self) -> None:
        environment = self.home / "environment"
        shutil.copytree(self.site / "tandem", environment / "tandem")
        for neighbour in TORCH.parent.iterdir():
            if not (environment / neighbour.name).exists():
                (environment / neighbour.name).symlink_to(neighbour)
        done = self.run_alone(environment / "tandem" / "bin" / "tandem", "--help")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_another_torch_is_refused_in_one_sentence(self) -> None:
        printed = self.run_python(
            "import sys, torch\n"
            "built_for, torch.__version__ = str(torch.__version__), '9.8.7'\n"
            "try:\n"
            "    import tandem\n"
            "except ImportError as error:\n"
            "    message = str(error)\n"
            "assert 'tandem._C' not in sys.modules\n"
            "assert f'built for torch {built_for} ' in message, message\n"
            "assert 'beside torch 9.8.7 ' in message, message\n"
            "print(message)\n"
        )
        self.assertIn("pip install --no-build-isolation", printed)
        self.assertEqual(len(printed.splitlines()), 1, printed)


if __name__ == "__main__":
    unittest.main()
