"""transformers' generate(): one call of the model for each word, with a cache that grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import transformers_cases as models
from .doors import Door
from .registry import Case, Observation, case


def generated(make: Callable[[], Any], prompt: Callable[[], dict[str, Any]], **how: Any) -> Case:
    def run(door: Door) -> Iterator[Observation]:
        model = door.inside(make().eval())
        for step in range(4):
            torch.manual_seed(step)
            yield {"tokens": model.generate(**prompt(), max_new_tokens=8, **how)}

    return run


def start() -> dict[str, Any]:
    ids = models.words(2, 5)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def heard() -> dict[str, Any]:
    return {"input_features": torch.randn(2, 8, 32)}


for name in ("gpt2", "llama", "mixtral", "mamba", "t5"):
    case(f"transformers.{name}_generate")(generated(models.MODELS[name][0], start, do_sample=False))
case("transformers.whisper_generate")(generated(models.whisper, heard, do_sample=False))
case("transformers.gpt2_sample")(generated(models.gpt2, start, do_sample=True))
case("transformers.llama_beams")(generated(models.llama, start, do_sample=False, num_beams=2))
case("transformers.llama_static_cache")(
    generated(models.llama, start, do_sample=False, cache_implementation="static")
)
