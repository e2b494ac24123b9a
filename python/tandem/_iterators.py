"""Iterators that a program can reach, while it is traced: what one of them gave could not be given back."""

import threading
from typing import Any

from . import _C


class Guard:
    """Stands in the place of an iterator. The thread that traces is refused, and the program runs as it is; others are given what they ask for."""

    def __init__(self, real: Any) -> None:
        object.__setattr__(self, "real", real)
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
        _C.refuse(f"the function uses a {type(real).__name__}, and what it takes from there could not be given back")
    return real
