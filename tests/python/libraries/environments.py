"""A virtual environment for each library. Torch is that of the Python in use; no library may replace it."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "build" / "libraries"

#: What pip is asked for; the first is the library itself.
REQUIREMENTS = {
    "torch": [],
    "transformers": ["transformers"],
    "torch_geometric": ["torch_geometric"],
    "schnetpack": ["schnetpack"],
    "mace": ["mace-torch"],
    "e3nn": ["e3nn"],
    "gpytorch": ["gpytorch"],
    "torchdiffeq": ["torchdiffeq"],
    "zuko": ["zuko"],
    "diffusers": ["diffusers"],
    "x_transformers": ["x-transformers"],
}


def python_of(library: str) -> Path:
    """The Python that has the library, which is installed if need be; CalledProcessError when that fails."""
    if not REQUIREMENTS[library]:
        return Path(sys.executable)
    folder = FOLDER / library
    if not (folder / "ready").exists():
        venv.create(folder, clear=True, with_pip=True)
        packages = (
            folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
        )
        (packages / "torch.pth").write_text(sysconfig.get_path("purelib") + "\n")
        constraints = folder / "constraints.txt"
        constraints.write_text(f"torch=={importlib.metadata.version('torch')}\n")
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "-c", constraints]
        subprocess.run([*pip, *REQUIREMENTS[library]], check=True, stdout=sys.stderr)
        (folder / "ready").touch()
    return folder / "bin" / "python"


def version_of(library: str) -> str:
    """Asked for in the library's own environment."""
    return importlib.metadata.version(REQUIREMENTS[library][0] if REQUIREMENTS[library] else library)
