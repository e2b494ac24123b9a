"""diffusers and x-transformers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .doors import Door
from .registry import Case, Observation, case
from .train import train


def noise_of(model: Any) -> Any:
    """What is trained of diffusion: the noise is predicted that was added."""
    from diffusers import DDPMScheduler

    scheduler = DDPMScheduler(num_train_timesteps=50)

    def batch() -> dict[str, Any]:
        clean, noise, steps = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16), torch.randint(0, 50, (2,))
        return {"sample": scheduler.add_noise(clean, noise, steps), "timestep": steps}

    return batch


@case("diffusers.unet")
def unet(door: Door) -> Iterator[Observation]:
    from diffusers import UNet2DModel

    model = UNet2DModel(
        sample_size=16,
        block_out_channels=(16, 32),
        layers_per_block=1,
        norm_num_groups=8,
        attention_head_dim=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    return train(door, model.train(), noise_of(model), lambda output: output.sample.square().mean())


@case("diffusers.unet_condition")
def unet_condition(door: Door) -> Iterator[Observation]:
    return _unet_condition(door, checkpointed=False)


@case("diffusers.unet_condition_checkpointed")
def unet_condition_checkpointed(door: Door) -> Iterator[Observation]:
    return _unet_condition(door, checkpointed=True)


def _unet_condition(door: Door, checkpointed: bool) -> Iterator[Observation]:
    from diffusers import UNet2DConditionModel

    model = UNet2DConditionModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        block_out_channels=(16, 32),
        layers_per_block=1,
        norm_num_groups=8,
        attention_head_dim=2,
        cross_attention_dim=12,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    ).train()
    if checkpointed:
        model.enable_gradient_checkpointing()
    noisy = noise_of(model)
    batch = lambda: {**noisy(), "encoder_hidden_states": torch.randn(2, 5, 12)}  # noqa: E731
    return train(door, model, batch, lambda output: output.sample.square().mean())


@case("diffusers.autoencoder")
def autoencoder(door: Door) -> Iterator[Observation]:
    from diffusers import AutoencoderKL

    model = AutoencoderKL(
        block_out_channels=(16, 32),
        norm_num_groups=8,
        sample_size=16,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    ).train()
    batch = lambda: {"sample": torch.randn(2, 3, 16, 16), "sample_posterior": True}  # noqa: E731
    return train(door, model, batch, lambda output: output.sample.square().mean())


@case("diffusers.transformer")
def diffusion_transformer(door: Door) -> Iterator[Observation]:
    from diffusers import DiTTransformer2DModel

    model = DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=3,
        num_layers=2,
        norm_num_groups=8,
        sample_size=16,
        patch_size=4,
        num_embeds_ada_norm=50,
    ).train()

    def batch() -> dict[str, Any]:
        return {
            "hidden_states": torch.randn(2, 3, 16, 16),
            "timestep": torch.randint(0, 50, (2,)),
            "class_labels": torch.randint(0, 50, (2,)),
        }

    return train(door, model, batch, lambda output: output.sample.square().mean())


def attention_layers(**options: Any) -> Case:
    def run(door: Door) -> Iterator[Observation]:
        from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

        layers = Decoder(dim=32, depth=2, heads=2, attn_dim_head=16, **options)
        model = AutoregressiveWrapper(
            TransformerWrapper(num_tokens=64, max_seq_len=16, attn_layers=layers)
        ).train()
        return train(door, model, lambda: (torch.randint(0, 64, (2, 13)),), lambda loss: loss)

    return run


case("x_transformers.decoder")(attention_layers())
case("x_transformers.flash")(attention_layers(attn_flash=True))
case("x_transformers.rotary_dropout")(
    attention_layers(rotary_pos_emb=True, attn_dropout=0.1, ff_dropout=0.1, ff_glu=True, use_rmsnorm=True)
)
case("x_transformers.alibi")(attention_layers(alibi_pos_bias=True, ff_swish=True))


@case("x_transformers.vision")
def vision(door: Door) -> Iterator[Observation]:
    from x_transformers import Encoder, ViTransformerWrapper

    model = ViTransformerWrapper(
        image_size=16, patch_size=4, num_classes=5, attn_layers=Encoder(dim=32, depth=2, heads=2)
    ).train()
    return train(door, model, lambda: (torch.randn(2, 3, 16, 16),), lambda output: output.square().mean())
