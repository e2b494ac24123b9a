"""torch_geometric, schnetpack, mace and e3nn: graphs and molecules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import torch

from .doors import Door
from .registry import Case, Observation, case
from .train import train

ATOMS = 6


def graph() -> dict[str, Any]:
    """Two graphs of six nodes side by side, each node connected with the next two."""
    one = torch.tensor([[i, (i + step) % ATOMS] for i in range(ATOMS) for step in (1, 2, 4, 5)]).t()
    return {"x": torch.randn(2 * ATOMS, 8), "edge_index": torch.cat([one, one + ATOMS], dim=1)}


def convolutions(layer: str, **options: Any) -> Case:
    def run(door: Door) -> Iterator[Observation]:
        import torch_geometric.nn as layers

        model = getattr(layers, layer)(
            in_channels=8, hidden_channels=16, num_layers=2, out_channels=4, dropout=0.2, **options
        ).train()
        return train(door, model, graph, lambda output: output.square().mean())

    return run


for name, layer in (("gcn", "GCN"), ("gat", "GAT"), ("sage", "GraphSAGE"), ("gin", "GIN")):
    case(f"torch_geometric.{name}")(convolutions(layer))


@case("torch_geometric.pooled")
def pooled(door: Door) -> Iterator[Observation]:
    """Graphs are told apart by a batch vector, whose length of graphs is given."""
    import torch_geometric.nn as layers

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(
                [layers.GCNConv(8, 16), layers.TransformerConv(16, 16), layers.GATv2Conv(16, 16)]
            )
            self.norm, self.last = layers.GraphNorm(16), torch.nn.Linear(16, 2)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = self.norm(layer(x, edge_index), batch, batch_size=2).relu()
            return self.last(layers.global_add_pool(x, batch, size=2))

    batch = torch.arange(2).repeat_interleave(ATOMS)
    return train(
        door, Pooled().train(), lambda: {**graph(), "batch": batch}, lambda output: output.square().mean()
    )


def molecule() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Kinds of atoms, where they are, and every pair of them."""
    kinds = torch.tensor([1, 6, 8, 1, 6, 1])
    places = torch.tensor(
        [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1]]
    ) + 0.1 * torch.randn(ATOMS, 3)
    pairs = torch.tensor([[i, j] for i in range(ATOMS) for j in range(ATOMS) if i != j]).t()
    return kinds, places, pairs


def potential(representation: str) -> Case:
    """Energies and forces, the gradients of which are second derivatives."""

    def run(door: Door) -> Iterator[Observation]:
        torch.utils.data.dataloader.T_co = TypeVar(
            "T_co", covariant=True
        )  # schnetpack imports it from there, where newer torch has it no more
        import schnetpack as spk

        part = getattr(spk.representation, representation)(
            n_atom_basis=16,
            n_interactions=2,
            radial_basis=spk.nn.GaussianRBF(n_rbf=8, cutoff=5.0),
            cutoff_fn=spk.nn.CosineCutoff(5.0),
        )
        model = spk.model.NeuralNetworkPotential(
            representation=part,
            input_modules=[spk.atomistic.PairwiseDistances()],
            output_modules=[
                spk.atomistic.Atomwise(n_in=16, output_key="energy"),
                spk.atomistic.Forces(energy_key="energy", force_key="forces"),
            ],
        )

        def batch() -> tuple[Any, ...]:
            kinds, places, (i, j) = molecule()
            return (
                {
                    "_atomic_numbers": kinds,
                    "_positions": places,
                    "_idx_i": i,
                    "_idx_j": j,
                    "_offsets": torch.zeros(len(i), 3),
                    "_idx_m": torch.zeros(ATOMS, dtype=torch.long),
                    "_n_atoms": torch.tensor([ATOMS]),
                },
            )

        return train(
            door,
            model.train(),
            batch,
            lambda output: output["energy"].square().sum() + output["forces"].square().mean(),
        )

    return run


case("schnetpack.schnet")(potential("SchNet"))
case("schnetpack.painn")(potential("PaiNN"))


@case("mace.scripted")
def scripted_mace(door: Door) -> Iterator[Observation]:
    """Parts of it are TorchScript by default."""
    return mace_potential(door, scripted=True)


@case("mace.plain")
def plain_mace(door: Door) -> Iterator[Observation]:
    return mace_potential(door, scripted=False)


def mace_potential(door: Door, scripted: bool) -> Iterator[Observation]:
    torch.serialization.add_safe_globals(
        [slice]
    )  # e3nn of that time does not say what its file of constants holds
    import e3nn
    import numpy
    from e3nn import o3
    from mace import modules

    e3nn.set_optimization_defaults(jit_script_fx=scripted)
    torch.set_default_dtype(torch.float64)
    model = modules.ScaleShiftMACE(
        r_max=5.0,
        num_bessel=4,
        num_polynomial_cutoff=5,
        max_ell=2,
        interaction_cls=modules.interaction_classes["RealAgnosticResidualInteractionBlock"],
        interaction_cls_first=modules.interaction_classes["RealAgnosticResidualInteractionBlock"],
        num_interactions=2,
        num_elements=3,
        hidden_irreps=o3.Irreps("8x0e + 8x1o"),
        MLP_irreps=o3.Irreps("8x0e"),
        gate=torch.nn.functional.silu,
        atomic_energies=numpy.array([1.0, 2.0, 3.0]),
        avg_num_neighbors=5,
        atomic_numbers=[1, 6, 8],
        correlation=2,
        radial_type="bessel",
        atomic_inter_scale=1.0,
        atomic_inter_shift=0.0,
    )

    def batch() -> tuple[Any, ...]:
        kinds, places, pairs = molecule()
        kinds = torch.searchsorted(torch.tensor([1, 6, 8]), kinds)
        zeros = torch.zeros(pairs.size(1), 3)
        return (
            {
                "positions": places.requires_grad_(),  # which MACE leaves to the caller when it is compiled
                "edge_index": pairs,
                "node_attrs": torch.nn.functional.one_hot(kinds, 3).to(places.dtype),
                "shifts": zeros,
                "unit_shifts": zeros,
                "cell": torch.zeros(3, 3),
                "batch": torch.zeros(ATOMS, dtype=torch.long),
                "ptr": torch.tensor([0, ATOMS]),
                "head": torch.zeros(1, dtype=torch.long),
            },
        )

    def loss(output: dict[str, torch.Tensor]) -> torch.Tensor:
        return output["energy"].square().sum() + output["forces"].square().mean()

    def function(data: dict[str, Any]) -> Any:
        return model(data, training=True)

    return train(door, model.train(), batch, loss, function)


@case("e3nn.convolution")
def equivariant_convolution(door: Door) -> Iterator[Observation]:
    from e3nn import nn, o3
    from e3nn.math import soft_one_hot_linspace

    class Convolution(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kinds = torch.nn.Embedding(9, 8)
            self.sphere = o3.Irreps.spherical_harmonics(2)
            self.product = o3.FullyConnectedTensorProduct(
                "8x0e", self.sphere, "8x0e + 4x1o", shared_weights=False
            )
            self.weights = nn.FullyConnectedNet([6, 16, self.product.weight_numel], torch.relu)
            self.last = o3.Linear("8x0e + 4x1o", "2x0e + 1x1o")

        def forward(self, kinds: torch.Tensor, places: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
            source, target = pairs
            edges = places[target] - places[source]
            directions = o3.spherical_harmonics(self.sphere, edges, normalize=True, normalization="component")
            lengths = soft_one_hot_linspace(
                edges.norm(dim=1), 0.0, 3.0, 6, basis="smooth_finite", cutoff=True
            )
            messages = self.product(self.kinds(kinds)[source], directions, self.weights(lengths))
            return self.last(torch.zeros(len(kinds), messages.size(1)).index_add(0, target, messages))

    return train(door, Convolution(), molecule, lambda output: output.square().mean())


@case("e3nn.layers")
def equivariant_layers(door: Door) -> Iterator[Observation]:
    from e3nn import nn, o3

    gate = nn.Gate("8x0e", [torch.nn.functional.silu], "4x0e", [torch.sigmoid], "4x1o")
    model = torch.nn.Sequential(
        o3.Linear("4x0e + 4x1o", gate.irreps_in),
        gate,
        nn.BatchNorm(gate.irreps_out),
        nn.NormActivation(gate.irreps_out, torch.sigmoid),
        o3.TensorSquare(gate.irreps_out),
        nn.Dropout(o3.TensorSquare(gate.irreps_out).irreps_out, 0.2),
    )
    return train(door, model.train(), lambda: (torch.randn(5, 16),), lambda output: output.square().mean())
