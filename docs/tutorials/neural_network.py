# requires: numpyro
# %% [markdown]
# # A Bayesian neural network
#
# A network with two hidden units, seven parameters and fourteen data. Its posterior has at least eight modes:
# swapping the hidden units changes nothing, and neither does flipping the signs of a unit's weights, bias and
# output. A sampler that says it has the posterior has to visit all eight copies equally often.
#
# **The truth is known here.** By symmetry each copy has an eighth of the mass. Given the hidden units the network
# is linear with Gaussian priors, so the output layer integrates out exactly; draws of the hidden layer from its
# prior, weighted by what is left, give log Z and the predictions.

# %% [hidden]
import os

SHORT = bool(os.environ.get("CDSAMPLER_SHORT"))
N_SAMPLES, LIMIT = (500, 100_000) if SHORT else (4000, 1_000_000)
N_PRIOR = 200_000 if SHORT else 2_000_000

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm

import cdsampler as cds

rng = np.random.default_rng(3)
x = jnp.asarray(np.sort(np.concatenate([rng.uniform(-3, -0.8, 7), rng.uniform(1, 3, 7)])))
noise = 0.2
rng = np.random.default_rng(0)
y = jnp.tanh(2 * (x + 1.6)) - 0.9 * jnp.tanh(1.5 * (x - 1.4)) - 0.6 + noise * jnp.asarray(rng.normal(size=14))


def hidden(weights, biases, x):
    return jnp.tanh(x[:, None] * weights + biases)  # (points, 2)


def predict(theta, x):
    weights, biases, outputs, constant = theta[:2], theta[2:4], theta[4:6], theta[6]
    return hidden(weights, biases, x) @ outputs + constant


scales = jnp.array([2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0])  # of the prior


def log_density(theta):  # prior and likelihood, normalised
    return norm.logpdf(theta, 0, scales).sum() + norm.logpdf(y, predict(theta, x), noise).sum()


# %% [markdown]
# ## One call

# %%
names = ("weight 1", "weight 2", "bias 1", "bias 2", "output 1", "output 2", "constant")
result = cds.sample(log_density, dim=7, n_samples=N_SAMPLES, max_evaluations=LIMIT, names=names, seed=0)
print(result.summary())

# %% [markdown]
# ## Are the eight copies equally frequent?
#
# A copy is told by the signs of both outputs and by which of the units has its step farther left. The constant is
# no use for telling, since it is the same in all of them.


# %%
def copy_of(theta):
    steps = -theta[:, 2:4] / theta[:, :2]
    return 4 * (theta[:, 4] > 0) + 2 * (theta[:, 5] > 0) + (steps[:, 0] < steps[:, 1])


shares = np.bincount(copy_of(result.positions), minlength=8) / len(result.positions)
error = np.sqrt(1 / 8 * 7 / 8 / result.ess.min())
print("shares of the copies:", np.round(shares, 3), "truth 0.125")
print(f"standard error of a share, from the least ESS: {error:.3f}")
assert np.all(abs(shares - 1 / 8) < 4.5 * error)

# %% [markdown]
# ## log Z and predictions
#
# With F the columns 1 and both hidden units, the data are $N(0, \sigma^2 I + F F^\top)$, and the outputs' posterior
# is Gaussian.

# %%
points = jnp.linspace(-4, 4, 81)


@jax.jit
def given_hidden(w, b):
    """Return the log likelihood without the outputs, and mean and variance of the prediction at `points`."""
    f, g = (jnp.column_stack([jnp.ones(len(z)), hidden(w, b, z)]) for z in (x, points))
    precision = jnp.eye(3) + f.T @ f / noise**2
    mean = jnp.linalg.solve(precision, f.T @ y) / noise**2
    log_likelihood = norm.logpdf(y, 0, noise).sum() + 0.5 * mean @ precision @ mean
    return log_likelihood - 0.5 * jnp.linalg.slogdet(precision)[1], g @ mean, (g @ jnp.linalg.inv(precision) * g).sum(1)


draws = 2 * jax.random.normal(jax.random.key(0), (N_PRIOR, 2, 2))
log_weights = jax.lax.map(lambda d: given_hidden(d[0], d[1])[0], draws, batch_size=10_000)
weights = np.exp(np.asarray(log_weights - logsumexp(log_weights), dtype=np.float64))
exact_error = np.sqrt(np.sum(weights**2))
exact = float(logsumexp(log_weights)) - np.log(N_PRIOR)
log_z, error = result.log_z
print(f"log Z {log_z:.3f} ± {error:.3f}, from draws of the prior {exact:.3f} ± {exact_error:.3f}")
assert abs(log_z - exact) < 4 * np.hypot(error, exact_error) + 0.03

heavy = np.argsort(weights)[-20_000:]  # all that count
share = weights[heavy] / weights[heavy].sum()
_, means, variances = jax.lax.map(lambda d: given_hidden(d[0], d[1]), draws[heavy], batch_size=1000)
exact_mean = share @ np.asarray(means)
exact_sd = np.sqrt(share @ (np.asarray(variances) + (np.asarray(means) - exact_mean) ** 2))

ours = np.asarray(jax.vmap(predict, (0, None))(jnp.asarray(result.positions), points))
off = abs(ours.mean(0) - exact_mean) / exact_sd
print(f"means of predictions differ by {off.max():.3f} posterior standard deviations at most,")
print(f"standard deviations by a factor of {np.exp(abs(np.log(ours.std(0) / exact_sd)).max()):.3f}")
assert off.max() < 4.5 * np.hypot(1 / np.sqrt(result.ess.min()), exact_error)

# %% [markdown]
# ## What NUTS says
#
# Four chains of NumPyro's NUTS on the same density, from draws of the prior.

# %%
from numpyro.diagnostics import split_gelman_rubin
from numpyro.infer import MCMC, NUTS

nuts = MCMC(
    NUTS(potential_fn=lambda theta: -log_density(theta)),
    num_warmup=500,
    num_samples=1000,
    num_chains=4,
    chain_method="vectorized",
    progress_bar=False,
)
nuts.run(jax.random.key(1), init_params=scales * jax.random.normal(jax.random.key(2), (4, 7)))
chains = np.asarray(nuts.get_samples(group_by_chain=True))
for chain in chains:
    print("shares of the copies:", np.round(np.bincount(copy_of(chain), minlength=8) / len(chain), 2))
rhat = split_gelman_rubin(chains)
print("R-hat:", "  ".join(f"{name} {value:.2f}" for name, value in zip(names, rhat, strict=True)))
assert rhat.max() > 1.1

figure, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained", num="Draws of one output against another")
rows = [("cdsampler", result.positions), ("NUTS, 4 chains", chains.reshape(-1, 7))]
for axis, (title, theta) in zip(axes[:2], rows, strict=True):
    axis.plot(theta[::2, 4], theta[::2, 5], ".", ms=1.5, color="#0072B2")
    axis.set(title=title, xlabel="output 1", ylabel="output 2", xlim=(-3, 3), ylim=(-3, 3))
low, high = np.quantile(ours, [0.05, 0.95], axis=0)
axes[2].fill_between(points, low, high, color="#0072B2", alpha=0.3, lw=0, label="5 to 95 %")
axes[2].plot(points, exact_mean, "k", lw=1, label="exact mean")
axes[2].plot(points, ours.mean(0), "--", color="#D55E00", label="mean of draws")
axes[2].errorbar(x, y, noise, fmt=".", color="k")
axes[2].set(title="prediction", xlabel="x")
axes[2].legend(fontsize=8)

# %% [markdown]
# Each chain of NUTS stays with few of the copies, and R-hat says so. Predictions don't depend on the copy, so
# NUTS's would be right here; means of single weights, log Z, and anything about modes that aren't copies of each
# other would not.
