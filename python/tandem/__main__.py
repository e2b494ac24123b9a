"""`python -m tandem ARGS...` is `tandem ARGS...`."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Becomes the program that the package carries, beside the torch of this Python, in which its comparisons
    with torch run too."""
    package = Path(__file__).parent
    program = package / "bin" / "tandem"
    if not program.exists():
        sys.exit(
            f"The program {program} is not there: "
            "build the target tandem_program, or install the package again."
        )
    os.environ.setdefault("TANDEM_PYTHON", sys.executable)
    torch = Path(find_spec("torch").origin).parent
    if torch != package.parent / "torch":  # the program itself looks for torch beside the package only
        places = [str(torch / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
        os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, places))
    os.execv(program, ["tandem", *sys.argv[1:]])


if __name__ == "__main__":
    main()
