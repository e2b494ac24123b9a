"""PyTorch's own eager mode and torch.compile on Tandem's benchmark models, in turn, in one process: what
Tandem is compared with.

A step is forward, backward, gradients dropped; the models are those of torch_models.py. Prints one JSON
object; values that do not exist (torch.compile refuses the model) are null. TORCHINDUCTOR_CACHE_DIR decides
whether the first compiled step is a cold or a warm one.
"""

import argparse
import json
import statistics
import sys
import time

import torch

from torch_models import MAKERS


class Contest:
    def __init__(self, name, device, layers, vocabulary):
        torch.manual_seed(0)
        model, inputs = MAKERS[name](device == "cuda", layers, vocabulary)
        self.model = model.to(device).train()
        self.inputs = [tensor.to(device) for tensor in inputs]
        self.compiled = torch.compile(self.model)
        self.synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None

    def step(self, function):
        self.synchronize()
        start = time.perf_counter()
        function(*self.inputs).backward()
        self.synchronize()
        taken = time.perf_counter() - start
        for parameter in self.model.parameters():
            parameter.grad = None
        return taken

    def first_compiled_step(self):
        """Seconds, or None when torch.compile refuses the model, which is said on standard error."""
        try:
            return self.step(self.compiled)
        except Exception as error:  # whatever kind of refusal: the eager numbers still count
            print(f"torch.compile refuses the model: {str(error).splitlines()[0]}", file=sys.stderr)
            return None

    def alternate(self, functions, seconds, warm_up=3):
        times = [[] for _ in functions]
        for _ in range(warm_up):
            for function in functions:
                self.step(function)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times[0]) < 3:
            for function, taken in zip(functions, times):
                taken.append(self.step(function))
        return [statistics.median(taken) * 1e3 for taken in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=list(MAKERS))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--layers", type=int, default=0)
    parser.add_argument("--vocabulary", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    contest = Contest(options.model, options.device, options.layers, options.vocabulary)
    line = {
        "model": options.model,
        "device": options.device,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }
    line["eager_first_s"] = contest.step(contest.model)
    line["compiled_first_s"] = contest.first_compiled_step()
    functions = [contest.model] + ([contest.compiled] if line["compiled_first_s"] is not None else [])
    medians = contest.alternate(functions, options.seconds) + [None]
    line["eager_ms"], line["compiled_ms"] = medians[0], medians[1]
    print(json.dumps(line), flush=True)


main()
