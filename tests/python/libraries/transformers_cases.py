"""transformers: default caches and default attention, with and without gradient checkpointing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from .doors import Door
from .registry import Case, Observation, case
from .train import train

WORDS = 64
TOKENS = {"vocab_size": WORDS, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
Batch = Callable[[], dict[str, Any]]


def words(*sizes: int) -> torch.Tensor:
    return torch.randint(3, WORDS, sizes)


def text() -> dict[str, Any]:
    ids = words(2, 12)
    return {"input_ids": ids, "labels": ids}


def masked_text() -> dict[str, Any]:
    """The second sequence ends early."""
    mask = torch.ones(2, 12, dtype=torch.long)
    mask[1, 9:] = 0
    return {**text(), "attention_mask": mask}


def gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(n_positions=32, n_embd=32, n_layer=2, n_head=2, **TOKENS))


SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}


def llama() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(num_key_value_heads=1, max_position_embeddings=32, **SMALL, **TOKENS))


def mixtral(**options: Any) -> Any:
    from transformers import MixtralConfig, MixtralForCausalLM

    return MixtralForCausalLM(
        MixtralConfig(num_key_value_heads=1, num_local_experts=4, **options, **SMALL, **TOKENS)
    )


def mixtral_with_router_loss() -> Any:
    return mixtral(output_router_logits=True)


def mamba() -> Any:
    from transformers import MambaConfig, MambaForCausalLM

    return MambaForCausalLM(MambaConfig(hidden_size=32, state_size=4, num_hidden_layers=2, **TOKENS))


def bert() -> Any:
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig(max_position_embeddings=32, **SMALL, **TOKENS))


def t5() -> Any:
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(
        T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=2, decoder_start_token_id=0, **TOKENS)
    )


def vit() -> Any:
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(ViTConfig(image_size=16, patch_size=4, num_labels=5, **SMALL))


def whisper() -> Any:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    sizes = {
        f"{part}_{what}": size
        for part in ("encoder", "decoder")
        for what, size in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 48))
    }
    return WhisperForConditionalGeneration(
        WhisperConfig(
            d_model=32,
            num_mel_bins=8,
            max_source_positions=16,
            max_target_positions=32,
            decoder_start_token_id=1,
            suppress_tokens=None,
            begin_suppress_tokens=None,
            **sizes,
            **TOKENS,
        )
    )


def clip() -> Any:
    from transformers import CLIPConfig, CLIPModel

    text_sizes = {"max_position_embeddings": 16, "projection_dim": 16, **SMALL, **TOKENS}
    return CLIPModel(
        CLIPConfig(
            text_config=text_sizes,
            vision_config={"image_size": 16, "patch_size": 4, "projection_dim": 16, **SMALL},
            projection_dim=16,
        )
    )


def image() -> dict[str, Any]:
    return {"pixel_values": torch.randn(2, 3, 16, 16), "labels": torch.randint(0, 5, (2,))}


def sound() -> dict[str, Any]:
    return {"input_features": torch.randn(2, 8, 32), "labels": words(2, 6)}


def image_and_text() -> dict[str, Any]:
    ids = words(2, 12)
    ids[:, -1] = TOKENS["eos_token_id"]
    return {"input_ids": ids, "pixel_values": torch.randn(2, 3, 16, 16), "return_loss": True}


MODELS: dict[str, tuple[Callable[[], Any], Batch]] = {
    "gpt2": (gpt2, text),
    "gpt2_masked": (gpt2, masked_text),
    "llama": (llama, text),
    "llama_masked": (llama, masked_text),
    "bert": (bert, masked_text),
    "t5": (t5, masked_text),
    "vit": (vit, image),
    "whisper": (whisper, sound),
    "clip": (clip, image_and_text),
    "mixtral": (mixtral, text),
    "mixtral_router_loss": (mixtral_with_router_loss, text),
    "mamba": (mamba, text),
}


def trained(make: Callable[[], Any], batch: Batch, checkpointed: bool) -> Case:
    def run(door: Door) -> Iterator[Observation]:
        model = make().train()
        if checkpointed:
            model.gradient_checkpointing_enable()
        return train(door, model, batch)

    return run


for name, (make, batch) in MODELS.items():
    case(f"transformers.{name}")(trained(make, batch, checkpointed=False))
for name in ("gpt2", "llama", "bert", "t5", "vit", "whisper", "clip", "mixtral", "mamba"):
    case(f"transformers.{name}_checkpointed")(trained(*MODELS[name], checkpointed=True))
