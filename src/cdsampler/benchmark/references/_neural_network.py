from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from cdsampler._typing import PRNGKey
from cdsampler.benchmark.references._hmc import AbstractHMCRecipe, Starts
from cdsampler.density import AbstractLogDensity
from cdsampler.targets import bayesian_neural_network

CAVEAT = (
    "Nobody can prove that these chains reached equilibrium: the posterior has astronomically many symmetric modes, "
    "and perhaps others. Chains from the prior and from the parameters that made the labels are compared; agreement "
    "is necessary, not sufficient."
)


@dataclass(frozen=True)
class NeuralNetworkHMC(AbstractHMCRecipe):
    """Long chains from the prior; a tenth more chains start at the true parameters, for comparison only."""

    method: ClassVar[str] = "long Hamiltonian Monte Carlo from draws of the prior"
    minutes: ClassVar[float] = 5.0
    groups: ClassVar[tuple[str, str]] = ("prior", "true_parameter")
    caveat: ClassVar[str] = CAVEAT
    keeps_second_group: ClassVar[bool] = False

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return bayesian_neural_network().dim

    @property
    def n_second(self) -> int:
        """A tenth of the chains, at least one."""
        return max(1, self.chains_per_block // 11)

    def density(self) -> AbstractLogDensity:
        """Return the log posterior; float32 resolves its values of some hundreds to 1e-4."""
        return bayesian_neural_network().density(np.float32)

    def starts(self, rng_key: PRNGKey) -> Starts:
        """Return draws of the prior, and the true parameters for the last chains."""
        target = bayesian_neural_network()
        group = (np.arange(self.chains_per_block) >= self.chains_per_block - self.n_second).astype(np.int64)
        prior = jax.random.normal(rng_key, (self.chains_per_block, target.dim), jnp.float32)
        truth = target.true_parameters.astype(jnp.float32)
        return Starts(jnp.where(group[:, None] == 0, prior, truth[None, :]), group)

    def to_samples(self, rng: np.random.Generator, positions: np.ndarray) -> np.ndarray:
        """Return the parameters as they are."""
        return positions
