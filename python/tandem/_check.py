"""Whether the torch that is here is the torch that the extension was compiled for."""

import torch

from ._build import TORCH_CUDA, TORCH_VERSION


def check_torch() -> None:
    """Raises ImportError beside another torch than the package was built for: the extension would crash or
    fail in ways that do not name the cause."""
    here = (str(torch.__version__), torch.version.cuda)
    if here != (TORCH_VERSION, TORCH_CUDA):
        raise ImportError(
            f"This tandem was built for {_name(TORCH_VERSION, TORCH_CUDA)} and is imported beside "
            f"{_name(*here)}: rebuild it by `python -m pip install --no-build-isolation --no-deps "
            "--force-reinstall .` in Tandem's repository."
        )


def _name(version: str, cuda: str | None) -> str:
    return f"torch {version} ({'CUDA ' + cuda if cuda else 'without CUDA'})"
