"""gpytorch, torchdiffeq and zuko: Gaussian processes, differential equations and flows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from .doors import Door
from .registry import Observation, case
from .train import train


@case("gpytorch.exact")
def exact_process(door: Door) -> Iterator[Observation]:
    import gpytorch

    class Process(gpytorch.models.ExactGP):
        def __init__(self, x: torch.Tensor, y: torch.Tensor, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: torch.Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    x = torch.linspace(0, 1, 20)
    y = torch.sin(6 * x) + 0.1 * torch.randn(20)
    model = Process(x, y, gpytorch.likelihoods.GaussianLikelihood()).train()
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    return train(door, model, lambda: (x, y), lambda loss: loss, lambda x, y: -likelihood(model(x), y))


@case("gpytorch.variational")
def variational_process(door: Door) -> Iterator[Observation]:
    import gpytorch

    class Process(gpytorch.models.ApproximateGP):
        def __init__(self, points: torch.Tensor) -> None:
            distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
            super().__init__(gpytorch.variational.VariationalStrategy(self, points, distribution))
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

        def forward(self, x: torch.Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model, noise = Process(torch.rand(6, 2)).train(), gpytorch.likelihoods.GaussianLikelihood()
    bound = gpytorch.mlls.VariationalELBO(noise, model, num_data=16)
    both = torch.nn.ModuleList([model, noise])
    return train(
        door,
        both,
        lambda: (torch.rand(16, 2), torch.randn(16)),
        lambda loss: loss,
        lambda x, y: -bound(model(x), y),
    )


def differential_equation(method: str, adjoint: bool) -> Callable[[Door], Iterator[Observation]]:
    def run(door: Door) -> Iterator[Observation]:
        import torchdiffeq

        class Field(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layers = torch.nn.Sequential(
                    torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
                )

            def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
                return self.layers(y**3)

        field, times = Field(), torch.linspace(0, 1, 5)
        solve = torchdiffeq.odeint_adjoint if adjoint else torchdiffeq.odeint

        def loss(start: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
            return (solve(field, start, times, method=method) - goal).abs().mean()

        return train(door, field, lambda: (torch.randn(4, 2), torch.randn(5, 4, 2)), lambda loss: loss, loss)

    return run


case("torchdiffeq.rk4")(differential_equation("rk4", adjoint=False))
case("torchdiffeq.rk4_adjoint")(differential_equation("rk4", adjoint=True))
case("torchdiffeq.dopri5")(differential_equation("dopri5", adjoint=False))
case("torchdiffeq.dopri5_adjoint")(differential_equation("dopri5", adjoint=True))


def flow(name: str, **options: Any) -> Callable[[Door], Iterator[Observation]]:
    def run(door: Door) -> Iterator[Observation]:
        import zuko

        model = getattr(zuko.flows, name)(3, 2, **options)
        batch = lambda: (torch.randn(8, 3), torch.randn(8, 2))  # noqa: E731
        return train(door, model, batch, lambda loss: loss, lambda x, c: -model(c).log_prob(x).mean())

    return run


case("zuko.nsf")(flow("NSF", transforms=2, hidden_features=(16, 16)))
case("zuko.maf")(flow("MAF", transforms=2, hidden_features=(16, 16)))
case("zuko.nice")(flow("NICE", transforms=2, hidden_features=(16, 16)))
case("zuko.cnf")(flow("CNF", hidden_features=(16, 16)))


@case("zuko.sampling")
def sampling(door: Door) -> Iterator[Observation]:
    """The reparametrised way: gradients go through samples."""
    import zuko

    model = zuko.flows.MAF(3, 2, transforms=2, hidden_features=(16,))
    return train(
        door,
        model,
        lambda: (torch.randn(8, 2),),
        lambda loss: loss,
        lambda c: model(c).rsample((4,)).square().mean(),
    )
