"""Generators of random numbers that are not torch's: what a trace draws from them is put back, since compiled
code would not draw again."""

import importlib
import random
import sys
from collections.abc import Callable
from typing import Any

_Source = tuple[str, Callable[[], Any], Callable[[Any], Any]]


def remember(generators: list[Any]) -> list[tuple[_Source, Any]]:
    """The states of Python's and NumPy's own generators, and of these."""
    sources: list[_Source] = [("Python's random module", random.getstate, random.setstate)]
    if "numpy" in sys.modules:
        numpy = importlib.import_module(
            "numpy.random"
        )  # which NumPy itself imports when it is first asked for
        sources.append(("numpy.random", numpy.get_state, numpy.set_state))
    for generator in generators:
        if isinstance(generator, random.SystemRandom):
            continue  # the machine's: it has no state
        if isinstance(generator, random.Random):
            sources.append(
                (
                    f"a {type(generator).__name__} of Python's random module",
                    generator.getstate,
                    generator.setstate,
                )
            )
        elif hasattr(generator, "bit_generator"):
            bits = generator.bit_generator
            sources.append(
                (
                    "a generator of numpy.random's",
                    lambda bits=bits: bits.state,
                    lambda state, bits=bits: setattr(bits, "state", state),
                )
            )
        elif hasattr(generator, "get_state"):
            sources.append(("a generator of numpy.random's", generator.get_state, generator.set_state))
    return [(source, source[1]()) for source in sources]


def put_back(remembered: list[tuple[_Source, Any]]) -> str:
    """Undoes draws; says whose numbers were drawn, or nothing."""
    drawn = ""
    for (name, get, put), before in remembered:
        if not _same(get(), before):
            put(before)
            drawn = drawn or name
    return drawn


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return (
            len(a) == len(b) and all(map(_same, a, b))
            if any(hasattr(item, "tobytes") for item in a)
            else a == b
        )
    return bool(a.tobytes() == b.tobytes() if hasattr(a, "tobytes") else a == b)
