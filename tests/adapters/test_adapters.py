"""Models of other libraries: values, gradients, names and constrained values."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import cdsampler as cds
from cdsampler import adapters

DATA = np.array([1.0, 2.0, 0.5])


def numpyro_model(data=None):
    numpyro = pytest.importorskip("numpyro")
    from numpyro import distributions as dist

    scale = numpyro.sample("scale", dist.Gamma(2.0, 1.0))
    w = numpyro.sample("w", dist.Dirichlet(jnp.ones(3)))
    loc = numpyro.sample("loc", dist.Normal(0.0, 3.0).expand([2]).to_event(1))
    numpyro.deterministic("total", loc.sum() + scale)
    numpyro.sample("y", dist.Normal(loc[0] + w[0], scale).expand([3]).to_event(1), obs=data)


def log_joint(scale, w, loc):
    """Return prior and likelihood of the model by SciPy."""
    prior = stats.gamma(2).logpdf(scale) + stats.dirichlet(np.ones(3)).logpdf(w) + stats.norm(0, 3).logpdf(loc).sum()
    return prior, stats.norm(loc[0] + w[0], scale).logpdf(DATA).sum()


def log_jacobian(function, q):
    """Return log|det| of a square Jacobian by differences."""
    eye, step = np.eye(len(q)), 1e-6
    columns = [(function(q + step * e) - function(q - step * e)) / (2 * step) for e in eye]
    return np.linalg.slogdet(np.array(columns))[1]


@pytest.fixture(scope="module")
def model():
    pytest.importorskip("numpyro")
    return adapters.from_numpyro(numpyro_model, data=jnp.asarray(DATA))


def test_numpyro_density_is_joint_density_with_the_jacobian(model):
    assert model.dim == 5
    assert model.density.names == ("loc[0]", "loc[1]", "scale", "w[0]", "w[1]")
    q = np.random.default_rng(0).normal(size=5)
    values = {name: array[0] for name, array in model.variables(q[None]).items()}
    assert values["total"] == pytest.approx(values["loc"].sum() + values["scale"])

    def constrained(position):
        found = model.variables(position[None])
        return np.concatenate([found["loc"][0], found["scale"], found["w"][0, :2]])

    prior, likelihood = log_joint(values["scale"], values["w"], values["loc"])
    expected = prior + likelihood + log_jacobian(constrained, q)
    assert float(model.density.value(jnp.asarray(q))[0]) == pytest.approx(expected, abs=1e-5)
    assert model.prior is not None
    assert float(model.prior.log_density(jnp.asarray(q))) == pytest.approx(expected - likelihood, abs=1e-5)


def test_numpyro_values_come_back_to_their_coordinates(model):
    q = np.random.default_rng(1).normal(size=5)
    values = {name: array[0] for name, array in model.variables(q[None]).items()}
    np.testing.assert_allclose(model.unconstrain(values), q, atol=1e-8)
    with pytest.raises(cds.InvalidInputError, match="lack loc, w"):
        model.unconstrain({"scale": 1.0})


def test_numpyro_prior_is_drawn_as_it_says(model):
    draws = jax.vmap(model.prior.draw)(jax.random.split(jax.random.key(0), 4000))
    values = model.variables(np.asarray(draws))
    assert stats.kstest(values["scale"], stats.gamma(2).cdf).pvalue > 1e-4
    assert stats.kstest(values["loc"][:, 1], stats.norm(0, 3).cdf).pvalue > 1e-4
    assert stats.kstest(values["w"][:, 2], stats.beta(1, 2).cdf).pvalue > 1e-4
    # Negative control: another distribution is told apart.
    assert stats.kstest(values["scale"], stats.gamma(2.3).cdf).pvalue < 1e-4


def test_numpyro_improper_priors_leave_no_reference():
    numpyro = pytest.importorskip("numpyro")
    from numpyro import distributions as dist

    def flat():
        x = numpyro.sample("x", dist.ImproperUniform(dist.constraints.real, (), ()))
        numpyro.factor("likelihood", -0.5 * x**2)

    made = adapters.from_numpyro(flat)
    assert made.prior is None
    assert float(made.density.value(jnp.array([2.0]))[0]) == pytest.approx(-2.0)


@pytest.mark.slow
def test_numpyro_evidence_from_the_prior():
    """Normal prior N(0, 2²) and one observation with sd 1: the evidence is N(y; 0, 5)."""
    numpyro = pytest.importorskip("numpyro")
    from numpyro import distributions as dist

    def normal(y):
        x = numpyro.sample("x", dist.Normal(0.0, 2.0))
        numpyro.sample("y", dist.Normal(x, 1.0), obs=y)

    result = cds.sample(adapters.from_numpyro(normal, 3.0), n_samples=1000, seed=0)
    assert result.log_z is not None
    assert result.log_z[0] == pytest.approx(stats.norm(0, 5**0.5).logpdf(3.0), abs=4 * result.log_z[1])
    assert result.variables["x"].mean() == pytest.approx(2.4, abs=4 * np.sqrt(0.8 / result.ess.min()))


def test_torch_values_and_gradients():
    torch = pytest.importorskip("torch")
    points = np.random.default_rng(0).normal(size=(6, 3))
    for density in (
        adapters.from_torch(lambda x: -0.5 * (x**2).sum(-1), 3),
        adapters.from_torch(lambda x: -0.5 * (x**2).sum(), 3, batched=False),
    ):
        values, gradients = density.gradient_function(points)
        np.testing.assert_allclose(values, -0.5 * (points**2).sum(1))
        np.testing.assert_allclose(gradients, -points)
    with pytest.raises(cds.DensityError, match="must return shape"):
        cds.find_mode(adapters.from_torch(lambda x: x, 3))
    module = torch.nn.Linear(3, 1)
    values, gradients = adapters.from_torch(module, 3).gradient_function(points)
    weight = module.weight.detach().numpy()
    np.testing.assert_allclose(gradients, np.broadcast_to(weight, (6, 3)), rtol=1e-5)


class FakeStan:
    """What BridgeStan's model offers, for a positive scale and a matrix of 2 × 2 in Stan's column-major order."""

    def param_unc_num(self):
        return 5

    def param_names(self, *, include_tp, include_gq):
        assert not include_tp
        assert not include_gq
        return ["s", "m.1.1", "m.2.1", "m.1.2", "m.2.2"]

    def param_unc_names(self):
        return self.param_names(include_tp=False, include_gq=False)

    def log_density(self, x, *, propto, jacobian):
        assert jacobian
        assert not propto
        if x[0] > 3:
            raise RuntimeError("Scale parameter is inf")
        return -0.5 * np.sum(x**2)

    def log_density_gradient(self, x, *, propto, jacobian):
        return self.log_density(x, propto=propto, jacobian=jacobian), -x

    def param_constrain(self, x):
        return np.concatenate([np.exp(x[:1]), x[1:]])

    def param_unconstrain(self, y):
        return np.concatenate([np.log(y[:1]), y[1:]])


def test_stan_elements_go_where_their_index_says():
    model = adapters.from_stan(FakeStan())
    q = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    values = {name: array[0] for name, array in model.variables(q[None]).items()}
    np.testing.assert_array_equal(values["m"], [[1.0, 3.0], [2.0, 4.0]])
    assert values["s"] == 1
    np.testing.assert_allclose(model.unconstrain(values), q)
    value, gradient = model.density.gradient_function(q[None])
    assert value[0] == -15
    np.testing.assert_array_equal(gradient[0], -q)
    # What Stan rejects is rejected.
    assert np.isnan(model.density.function(np.array([[4.0, 0, 0, 0, 0]]))[0][0])


def test_stan_bad_input_is_named(tmp_path):
    with pytest.raises(cds.InvalidInputError, match="There is no file"):
        adapters.from_stan(tmp_path / "model.stan")
    with pytest.raises(cds.InvalidInputError, match="has its data already"):
        adapters.from_stan(FakeStan(), data="{}")
    with pytest.raises(cds.InvalidInputError, match="lack m"):
        adapters.from_stan(FakeStan()).unconstrain({"s": 1.0})


def test_openmm_forces_are_the_gradient():
    openmm = pytest.importorskip("openmm")
    system = openmm.System()
    for _ in range(3):
        system.addParticle(12.0)
    bonds = openmm.HarmonicBondForce()
    bonds.addBond(0, 1, 0.15, 1000.0)
    bonds.addBond(1, 2, 0.15, 1000.0)
    system.addForce(bonds)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    model = adapters.from_openmm(context, 300.0, centroid_scale=0.2)
    x = np.array([0.0, 0.0, 0.1, 0.02, 0.14, 0.0, 0.15, 0.05, 0.01])
    value, gradient = model.density.gradient_function(x[None])
    positions = x.reshape(3, 3)
    lengths = np.linalg.norm(positions[:2] - positions[1:], axis=1)
    energy = 0.5 * 1000 * np.sum((lengths - 0.15) ** 2)
    expected = -energy / (0.00831446261815324 * 300) - 0.5 * np.sum((positions.mean(0) / 0.2) ** 2)
    assert value[0] == pytest.approx(expected, rel=1e-6)
    step = 1e-5
    for i, e in enumerate(np.eye(9)):
        slope = np.diff(model.density.function(x + step * np.array([-e, e]))[0])[0] / (2 * step)
        assert gradient[0, i] == pytest.approx(slope, abs=1e-3 * np.abs(gradient).max())
    assert model.variables(x[None])["positions"].shape == (1, 3, 3)
    with pytest.raises(cds.InvalidInputError, match="temperature must be positive"):
        adapters.from_openmm(context, -1.0)


PROGRAM = """
import sys
while True:
    line = sys.stdin.readline()
    if not line:
        break
    for _ in range(int(line)):
        x = [float(word) for word in sys.stdin.readline().split()]
        if x[0] == 7:
            sys.exit(3)
        if x[0] == 8:
            print("what?", flush=True)
        else:
            print(-0.5 * sum(v * v for v in x), *(-v for v in x), flush=True)
"""


def test_a_program_answers_batches(tmp_path):
    path = Path(tmp_path) / "program.py"
    path.write_text(PROGRAM)
    density = adapters.from_program([sys.executable, str(path)], 2, has_gradient=True)
    points = np.random.default_rng(0).normal(size=(5, 2))
    values, gradients = density.gradient_function(points)
    np.testing.assert_allclose(values, -0.5 * (points**2).sum(1), rtol=1e-14)
    np.testing.assert_allclose(gradients, -points, rtol=1e-14)
    with pytest.raises(Exception, match="ended with exit code 3"):
        density.gradient_function(np.array([[7.0, 0.0]]))
    with pytest.raises(Exception, match=r"must answer 3 numbers for a point, got 'what\?'"):
        density.gradient_function(np.array([[8.0, 0.0]]))
    # It was started again.
    np.testing.assert_allclose(density.gradient_function(points)[0], values)
    with pytest.raises(cds.InvalidInputError, match="Can't start the program"):
        adapters.from_program("there-is-no-such-program", 2)


def test_pymc_density_names_and_values():
    pm = pytest.importorskip("pymc")
    with pm.Model(coords={"group": ["a", "b"]}) as made:
        scale = pm.HalfNormal("scale", 2.0)
        loc = pm.Normal("loc", 0, 3, dims="group")
        pm.Deterministic("total", loc.sum() + scale)
        pm.Normal("y", loc[0], scale, observed=DATA)
    model = adapters.from_pymc(made)
    assert model.dim == 3
    q = np.array([0.3, -1.0, 2.0])
    point = dict(zip(("scale_log__", "loc"), (q[0], q[1:]), strict=True))
    assert float(model.density.value(jnp.asarray(q))[0]) == pytest.approx(float(made.compile_logp()(point)))
    values = {name: array[0] for name, array in model.variables(q[None]).items()}
    assert values["scale"] == pytest.approx(np.exp(0.3))
    assert values["total"] == pytest.approx(1 + np.exp(0.3))
    np.testing.assert_allclose(model.unconstrain(values), q)
    assert model.dims["loc"] == ["group"]
    assert list(model.coords["group"]) == ["a", "b"]
