"""What compiling from Python costs: the first call of gpt in a fresh process, and recording one node.
Prints one JSON object.

`first_ratio` is the median over pairs of fresh processes, eager and compiled in turn: the first step
(forward and backward) through tandem.compile over the first eager one. `record_adds` is the time to record
one node of the 12-layer gpt, forward and backward, in one-element eager adds. `check_us` is what a call
spends on its arguments and on what is around, for a plain function with a global and an object;
`gpt_check_us` that for the 12-layer gpt, `gpt_check_share` that after a walk over 64 MB, which empties the
caches, over the eager forward.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time
import types

import torch

import tandem
from torch_models import MAKERS, Gpt


def first_step(kind):
    torch.manual_seed(0)
    model, inputs = MAKERS["gpt"](False)
    function = tandem.compile(model, backend="eager") if kind == "compiled" else model
    start = time.perf_counter()
    function(*inputs).backward()
    return time.perf_counter() - start


def first_step_in_fresh_process(kind, threads):
    command = [
        sys.executable,
        str(pathlib.Path(__file__).resolve()),
        "--first",
        kind,
        "--threads",
        str(threads),
    ]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def eager_add_us(calls=200_000):
    a, b = torch.ones(1), torch.ones(1)
    start = time.perf_counter()
    for _ in range(calls):
        a + b
    return (time.perf_counter() - start) / calls * 1e6


def record_us_per_node():
    model = Gpt(layers=12, width=768, heads=12, vocabulary=1000, context=128)
    tokens, targets = torch.randint(1000, (1, 128)), torch.randint(1000, (1, 128))
    explanation = tandem.explain(tandem.compile(model, backend="eager"), tokens, targets)
    return explanation.trace_seconds / explanation.nodes_recorded * 1e6


SCALE, CONFIG = 2.0, types.SimpleNamespace(inner=types.SimpleNamespace(shift=1.0))


def plain(x):
    return x * SCALE + CONFIG.inner.shift


def check_us(check, *inputs, calls):
    start = time.perf_counter()
    for _ in range(calls):
        check(*inputs)
    return (time.perf_counter() - start) / calls * 1e6


def checks():
    x, compiled = torch.ones(4), tandem.compile(plain, watched_calls=False)
    compiled(x)
    model = Gpt(layers=12, width=768, heads=12, vocabulary=1000, context=64)
    inputs = torch.randint(1000, (4, 64)), torch.randint(1000, (4, 64))
    gpt, other = tandem.compile(model, watched_calls=False), torch.zeros(64 << 20, dtype=torch.uint8)
    gpt(*inputs)
    cold, eager = [], []
    for _ in range(9):
        other.add_(1)
        cold.append(check_us(gpt._tandem.knows, *inputs, calls=1))
        eager.append(check_us(model, *inputs, calls=1))
    return {
        "check_us": min(check_us(compiled._callable.knows, x, calls=20_000) for _ in range(5)),
        "gpt_check_us": min(check_us(gpt._tandem.knows, *inputs, calls=500) for _ in range(5)),
        "gpt_check_share": statistics.median(cold) / statistics.median(eager),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7, help="how many pairs of fresh processes")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--first", choices=["eager", "compiled"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.first:
        print(first_step(options.first))
        return
    pairs = [
        [first_step_in_fresh_process(kind, options.threads) for kind in ("eager", "compiled")]
        for _ in range(options.pairs)
    ]
    adds = [eager_add_us() for _ in range(5)]
    record_us_per_node()
    records = [record_us_per_node() for _ in range(7)]
    add, record = statistics.median(adds), statistics.median(records)
    print(
        json.dumps(
            {
                "eager_first_s": statistics.median(eager for eager, _ in pairs),
                "first_s": statistics.median(compiled for _, compiled in pairs),
                "first_ratio": statistics.median(compiled / eager for eager, compiled in pairs),
                "eager_add_us": add,
                "record_us_per_node": record,
                "record_adds": record / add,
                **checks(),
            }
        )
    )


main()
