# requires: numpyro
# %% [markdown]
# # Evidence: how many periods are in the data?
#
# Sixteen noisy measurements, and three models of them: a constant; a constant and one sine wave of unknown
# frequency; a constant and two. The evidence (marginal likelihood) says which one the data favour. It needs log Z
# of each posterior, which MCMC by itself doesn't give, and the posteriors have several modes, because sparse data
# leave several frequencies possible.
#
# **The truth is known here.** Given the frequencies a model is linear with Gaussian priors, so amplitudes integrate
# out exactly. What is left is an integral over one or two frequencies, done on a grid.

# %% [hidden]
import os

SHORT = bool(os.environ.get("CDSAMPLER_SHORT"))
N_SAMPLES, LIMIT = (500, 100_000) if SHORT else (4000, 2_000_000)

# %%
import itertools

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm

import cdsampler as cds

rng = np.random.default_rng(0)
x = jnp.asarray(np.sort(rng.choice(20, 16, replace=False)) * 0.5 + rng.uniform(-0.05, 0.05, 16))
signal = 0.3 + jnp.sin(2.3 * x + 0.4) + 0.6 * jnp.sin(4.1 * x + 1.0)
noise = 0.6
y = signal + noise * jnp.asarray(rng.normal(size=16))
highest = 10.0  # frequencies are uniform below this


def design(*frequencies):
    """Return the columns 1, sin and cos of each frequency, at the data's x."""
    waves = [f(w * x) for w in frequencies for f in (jnp.sin, jnp.cos)]
    return jnp.stack([jnp.ones_like(x), *waves], axis=1)


# %% [markdown]
# ## The models as densities
#
# A parameter vector has the amplitudes, each N(0, 1) under the prior, and for each wave a number u whose prior is
# N(0, 1), too: its frequency is 10 Φ(u), which is uniform. That makes all of space the support. Prior and
# likelihood have to be normalised if log Z is to be the log evidence.


# %%
def model(n_waves):
    n_amplitudes = 1 + 2 * n_waves

    def log_density(theta):
        amplitudes, u = theta[:n_amplitudes], theta[n_amplitudes:]
        mean = design(*(highest * norm.cdf(u))) @ amplitudes
        return norm.logpdf(theta).sum() + norm.logpdf(y, mean, noise).sum()

    return log_density, n_amplitudes + n_waves


# %% [markdown]
# ## The truth, on a grid
#
# With amplitudes integrated out, the data are Gaussian with covariance $\sigma^2 I + F F^\top$, where F is the
# design:
#
# $$ Z = \int N(y; 0, \sigma^2 I + F_\omega F_\omega^\top)\, \frac{d\omega}{10^k} $$


# %%
def log_marginal(*frequencies):
    f = design(*frequencies)
    factor = jnp.linalg.cholesky(noise**2 * jnp.eye(len(x)) + f @ f.T)
    z = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
    return norm.logpdf(z).sum() - jnp.log(jnp.diag(factor)).sum()


n_grid = 200 if SHORT else 400
grid = (jnp.arange(n_grid) + 0.5) * highest / n_grid
one = jax.vmap(log_marginal)(grid)
two = jax.lax.map(lambda w: jax.vmap(log_marginal, (None, 0))(w, grid), grid)
truth = [float(log_marginal()), float(logsumexp(one) - jnp.log(n_grid)), float(logsumexp(two) - 2 * jnp.log(n_grid))]
print("log evidence, exact:", np.round(truth, 3))

# %% [markdown]
# ## One call for each model
#
# The model without waves is Gaussian and has its exact value already.

# %%
results = []
for n_waves in (1, 2):
    log_density, dim = model(n_waves)
    results.append(cds.sample(log_density, dim=dim, n_samples=N_SAMPLES, max_evaluations=LIMIT, seed=0))
    print(f"{n_waves} wave(s)\n{results[-1].summary()}\n")

# %% [markdown]
# What differs from the truth, in the standard errors that the runs report:

# %%
for n_waves, result in zip((1, 2), results, strict=True):
    log_z, error = result.log_z
    off = log_z - truth[n_waves]
    print(f"{n_waves} wave(s): log Z {log_z:.3f} ± {error:.3f}, exact {truth[n_waves]:.3f}, off by {off / error:+.1f}")
    assert abs(off) < 4 * error + 0.02

log_odds = results[1].log_z[0] - results[0].log_z[0]
print(f"two waves against one: Bayes factor {np.exp(log_odds):.2f}, exact {np.exp(truth[2] - truth[1]):.2f}")

# %% [markdown]
# Two waves made the data, and two waves win, though not by much: sixteen points don't say more.
#
# ## The frequency of a single wave
#
# Its posterior has three modes. The weights come from the draws, and are compared with the grid's.

# %%
frequency = highest * np.asarray(norm.cdf(results[0].positions[:, -1]))
exact = np.asarray(jnp.exp(one - logsumexp(one)))
edges = np.array([0.0, 1.5, 3.0, 6.0, 10.0])
shares = np.histogram(frequency, edges)[0] / len(frequency)
exact_shares = np.histogram(grid, edges, weights=exact)[0]
n_effective = results[0].ess[-1]
print("frequency between  ", "  ".join(f"{a:.3g} and {b:.3g}" for a, b in itertools.pairwise(edges)))
print("share of the draws ", np.round(shares, 3))
print("exact              ", np.round(exact_shares, 3))
assert np.all(abs(shares - exact_shares) < 4 * np.sqrt(0.25 / n_effective))

figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", num="Data, and the posterior of the frequency")
axes[0].errorbar(x, y, noise, fmt="o", ms=4, color="k")
axes[0].set(xlabel="x", ylabel="y", title="data")
bins = np.linspace(0, highest, 101)
axes[1].hist(frequency, bins, density=True, color="#0072B2", label="draws")
axes[1].plot(grid, exact * n_grid / highest, "k", lw=1, label="exact")
axes[1].set(xlabel="frequency", title="one wave")
axes[1].legend()

# %% [markdown]
# ## What NUTS says
#
# Four chains of NumPyro's NUTS on the same density, from draws of the prior.

# %%
from numpyro.diagnostics import split_gelman_rubin
from numpyro.infer import MCMC, NUTS

log_density, dim = model(1)
nuts = MCMC(
    NUTS(potential_fn=lambda theta: -log_density(theta)),
    num_warmup=500,
    num_samples=1000,
    num_chains=4,
    chain_method="vectorized",
    progress_bar=False,
)
nuts.run(jax.random.key(1), init_params=jax.random.normal(jax.random.key(2), (4, dim)))
chains = np.asarray(nuts.get_samples(group_by_chain=True))
for chain in highest * np.asarray(norm.cdf(chains[:, :, -1])):
    print("shares of the four intervals:", np.round(np.histogram(chain, edges)[0] / len(chain), 2))
rhat = float(split_gelman_rubin(chains[:, :, -1]))
print(f"R-hat of u: {rhat:.2f}")
assert rhat > 1.05

# %% [markdown]
# Each chain keeps to a mode or two, R-hat says so, and the shares of all four together depend on where they
# started. NUTS gives no log Z.
