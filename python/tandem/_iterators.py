"""Iterators that a program can reach and what it prints, while it is traced: neither could be undone."""

import sys
import threading
from collections.abc import Callable
from typing import Any

from . import _C


class Guard:
    """Stands in the place of an iterator. The thread that traces is refused, and the program runs as it is;
    others are given what they ask for."""

    def __init__(self, real: Any, refuse: Callable[[Any], None] | None = None) -> None:
        object.__setattr__(self, "real", real)
        object.__setattr__(self, "refuse", refuse or _refuse)
        object.__setattr__(self, "thread", threading.get_ident())

    def __iter__(self) -> Any:
        return iter(_opened(self))

    def __next__(self) -> Any:
        return next(_opened(self))

    def __getattr__(self, name: str) -> Any:
        return getattr(_opened(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_opened(self), name, value)

    def __enter__(self) -> Any:
        return _opened(self).__enter__()

    def __exit__(self, *error: Any) -> Any:
        return _opened(self).__exit__(*error)


def _opened(guard: Guard) -> Any:
    real = object.__getattribute__(guard, "real")
    if object.__getattribute__(guard, "thread") == threading.get_ident():
        object.__getattribute__(guard, "refuse")(real)
    return real


def _refuse(real: Any) -> None:
    _C.refuse(
        f"the function uses a {type(real).__name__}, and what it takes from there could not be given back"
    )


class _Output(Guard):
    """Only what is really written is refused: programs ask for encodings and the like, and `print` for this
    before it looks at what it shall print."""

    def write(self, text: str) -> Any:
        return _opened(self).write(text)

    def writelines(self, lines: Any) -> Any:
        return _opened(self).writelines(lines)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "real"), name)


class GuardOutput:
    """What is printed while a program is traced would be printed twice: here by the trace, and when the
    program runs as it is."""

    def __init__(self) -> None:
        self.real = sys.stdout
        self.guard = _Output(self.real, lambda real: _C.refuse_once("the function prints"))
        if self.real is not None:
            sys.stdout = self.guard

    def leave(self) -> None:
        """Puts back what was there, unless somebody else put something there meanwhile."""
        if sys.stdout is self.guard:
            sys.stdout = self.real
