# requires: numpyro
# %% [markdown]
# # A NumPyro model with two answers
#
# A straight line, with errors of a Cauchy distribution so that outliers don't matter. Half of the data lie along
# one line and half along another, so either half can be the outliers: the posterior of the slope has two modes.
#
# **The truth is known here**: three parameters, integrated on a grid.

# %% [hidden]
import os

SHORT = bool(os.environ.get("CDSAMPLER_SHORT"))
N_SAMPLES, LIMIT = (500, 60_000) if SHORT else (4000, None)

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist

import cdsampler as cds

rng = np.random.default_rng(8)
x = rng.uniform(-2, 2, 24)
y = np.where(np.arange(24) % 2 == 0, x + 0.5, -0.8 * x - 0.5) + 0.12 * rng.normal(size=24)


def model(x, y):
    intercept = numpyro.sample("intercept", dist.Normal(0, 2))
    slope = numpyro.sample("slope", dist.Normal(0, 2))
    scale = numpyro.sample("scale", dist.HalfNormal(0.25))
    numpyro.sample("y", dist.Cauchy(intercept + slope * x, scale), obs=y)


# %% [markdown]
# ## One call
#
# `from_numpyro` makes a target of a model and its data, in unconstrained coordinates and with the Jacobian in the
# density. `variables` are the model's own again.

# %%
from cdsampler.adapters import from_numpyro

result = cds.sample(from_numpyro(model, x, y), n_samples=N_SAMPLES, max_evaluations=LIMIT, seed=0)
print(result.summary())
draws = {name: values.ravel() for name, values in result.variables.items()}
slope = draws["slope"]

# %% [markdown]
# ## The truth, on a grid

# %%
n_grid = 121
intercepts, slopes = np.linspace(-3, 3, n_grid), np.linspace(-3, 3, n_grid)
log_scales = np.linspace(np.log(0.01), np.log(2), 60)
scales = np.exp(log_scales)
log_joint = np.zeros((n_grid, n_grid, 60))
for xi, yi in zip(x, y, strict=True):
    squares = (yi - intercepts[:, None] - slopes * xi) ** 2
    log_joint -= np.log1p(squares[:, :, None] / scales**2) + np.log(np.pi * scales)
log_joint += np.log(2) - 0.5 * np.log(2 * np.pi) - np.log(0.25) - 0.5 * (scales / 0.25) ** 2 + log_scales
for axis, values in ((0, intercepts), (1, slopes)):
    shape = [1, 1, 1]
    shape[axis] = n_grid
    log_joint += (-0.5 * np.log(2 * np.pi * 4) - values**2 / 8).reshape(shape)
joint = np.exp(log_joint - log_joint.max())
volume = np.prod([grid[1] - grid[0] for grid in (intercepts, slopes, log_scales)])
exact_log_z = log_joint.max() + np.log(joint.sum() * volume)
marginal = joint.sum((0, 2)) / joint.sum()
exact_share = marginal[slopes > 0.1].sum()

share = np.mean(slope > 0.1)
error = np.sqrt(exact_share * (1 - exact_share) / result.ess.min())
print(f"share of positive slopes {share:.3f} ± {error:.3f}, exact {exact_share:.3f}")
print("log Z {:.3f} ± {:.3f}".format(*result.log_z), f"exact {exact_log_z:.3f}")
assert abs(share - exact_share) < 4 * error + 0.005
assert abs(result.log_z[0] - exact_log_z) < 4 * result.log_z[1] + 0.02

# %% [markdown]
# ## What NUTS says
#
# Four chains of NumPyro's NUTS, from its own initial points.

# %%
from numpyro.infer import MCMC, NUTS

nuts = MCMC(NUTS(model), num_warmup=500, num_samples=1000, num_chains=4, chain_method="vectorized", progress_bar=False)
nuts.run(jax.random.key(1), x, y)
chains = np.asarray(nuts.get_samples(group_by_chain=True)["slope"])
rhat = float(numpyro.diagnostics.split_gelman_rubin(chains))
print("share of positive slopes in each chain:", np.round((chains > 0.1).mean(1), 2))
print(f"R-hat {rhat:.2f}")

figure, axes = plt.subplots(
    1, 2, figsize=(9, 3.2), layout="constrained", num="Data with two lines, posterior of the slope"
)
line = np.array([-2, 2])
some = np.random.default_rng(0).choice(len(slope), 60, replace=False)
axes[0].plot(line, (draws["intercept"][some, None] + slope[some, None] * line).T, color="#0072B2", lw=0.4)
axes[0].plot(x, y, "k.")
axes[0].set(xlabel="x", ylabel="y", title="data and 60 draws")
bins = np.linspace(-2, 2.5, 91)
axes[1].hist(slope, bins, density=True, color="#0072B2", label="draws")
axes[1].hist(chains.ravel(), bins, density=True, histtype="step", color="#D55E00", label="NUTS, 4 chains")
axes[1].plot(slopes, marginal / (slopes[1] - slopes[0]), "k", lw=1, label="exact")
axes[1].set(xlabel="slope", xlim=(-2, 2.5))
axes[1].legend(fontsize=8)

# %% [markdown]
# Where a chain of NUTS ends depends on where it began. The four together give the share of chains that began on
# either side, not of the mass.
