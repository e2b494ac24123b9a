"""Programs that keep state in other things than attributes and containers; made as
those of state_programs are."""

import array
import contextvars
import itertools
import os
import types

import numpy
import torch


def class_of_an_object():
    class Twice:
        def go(self, x):
            self.__class__ = Thrice
            return x * 2

    class Thrice:
        def go(self, x):
            self.__class__ = Twice
            return x * 3

    thing = Twice()
    return (lambda x: thing.go(x)), (), None


def numbers_in_plain_memory():
    kept = [numpy.zeros((2, 2))[:, 0], bytearray(1), array.array("d", [0.0])]

    def function(x):
        kept[0][1] += 1
        kept[1].append(1)
        kept[2].append(2.0)
        return x * float(kept[0][1]) * len(kept[1]) * len(kept[2])

    return function, (), None


def iterators():
    def numbers():
        yield from range(1, 100)

    kept, counter, holder = (
        [],
        itertools.count(1),
        types.SimpleNamespace(generator=numbers(), listed=[iter([5, 6, 7, 8, 9, 10])]),
    )

    def function(x):
        kept.append(next(counter))
        return x * next(holder.generator) * next(holder.listed[0]) * kept[-1]

    return function, (), kept


def batches_of_a_loader():
    data = torch.utils.data.DataLoader(
        torch.arange(20.0), batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(3)
    )
    trainer = types.SimpleNamespace(batches=iter(data), losses=[])

    def function(x):
        trainer.losses.append((next(trainer.batches) * x).mean())
        return trainer.losses[-1]

    return function, (), None


def context_variable():
    variable = contextvars.ContextVar("variable", default=0)

    def function(x):
        variable.set(variable.get() + 1)
        return x * variable.get()

    return function, (), None


def environment():
    os.environ["TANDEM_STATE_TEST"] = "1"

    def function(x):
        os.environ["TANDEM_STATE_TEST"] += "1"
        return x * len(os.environ["TANDEM_STATE_TEST"])

    return function, (), None


PROGRAMS = (
    class_of_an_object,
    numbers_in_plain_memory,
    iterators,
    batches_of_a_loader,
    context_variable,
    environment,
)
