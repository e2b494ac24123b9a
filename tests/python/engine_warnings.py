"""What the engine warns of: it writes to the process's stderr, behind Python's back."""

import contextlib
import os
import sys
import tempfile


@contextlib.contextmanager
def engine_warnings():
    """A list that has the warnings, a line each, once the block has ended."""
    lines = []
    sys.stderr.flush()
    with tempfile.TemporaryFile("w+") as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            lines += [
                line for line in file.read().splitlines() if line.startswith("[tandem") and "warning:" in line
            ]
