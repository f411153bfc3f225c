import numpy as np
import pytest

from cdsampler.density import Evaluations
from cdsampler.kernels import MALA
from cdsampler.metrics import Floor, MetricValue
from cdsampler.paths import GaussianReference, geometric_schedule
from cdsampler.samplers import NRPT, Evidence, TemperingDiagnostics
from cdsampler.sampling import Result, RunWarning, Timing

N = 50


def _evaluations(n_chains, value=0, gradient=0, neg_inf=0, nan=0, pos_inf=0):
    counts = (value, gradient, neg_inf, nan, pos_inf)
    return Evaluations(*(np.full(n_chains, count, np.int32) for count in counts))


def _tempering(betas=None, **changes):
    betas = geometric_schedule(6, 1e-3) if betas is None else np.asarray(betas)
    n = len(betas)
    tempering = TemperingDiagnostics(
        betas=betas,
        rejection=np.linspace(0.3, 0.5, n - 1),
        acceptance=np.concatenate([[1.0], np.linspace(0.55, 0.6, n - 1)]),
        barrier=float(np.linspace(0.3, 0.5, n - 1).sum()),
        restarts=np.arange(N) % 5,
        round_trips=np.arange(N) % 2 + 1,
        evidence=Evidence(-1.25, 0.031, -1.23, -1.27, 0.05),
    )
    return tempering._replace(**changes)


def _result(dim=2, *, n=N, tempering="default", **changes):
    rng = np.random.default_rng(7)
    samples = rng.standard_normal((n, 1, dim))
    fields = {
        "samples": samples,
        "log_density": -0.5 * np.sum(samples**2, axis=-1),
        "evaluations": _evaluations(n, value=4, gradient=300),
        "tuning_evaluations": _evaluations(1, gradient=10_000).total(),
        "sampler": NRPT(GaussianReference(3.0), geometric_schedule(6, 1e-3), MALA(0.5), 60),
        "seed": 7,
        "names": tuple(f"x{i}" for i in range(dim)),
        "timing": Timing(total=7.0, compilation=5.0),
        "tempering": _tempering() if tempering == "default" else tempering,
    }
    return Result(**fields | changes)


@pytest.fixture
def evaluations():
    return _evaluations


@pytest.fixture
def make_tempering():
    return _tempering


@pytest.fixture
def make_result():
    return _result


@pytest.fixture
def result():
    return _result()


@pytest.fixture
def metrics():
    return [
        MetricValue("wasserstein_2", 5.135, Floor(4.843, 1.443, 3), 5.135 / 4.843, 500),
        MetricValue("mmd_squared_energy", -0.0012, Floor(0.00093, 0.00081, 20), -0.0012 / 0.00093, 500),
        MetricValue("mode_weight_total_variation", 0.3, Floor(0.1, 0.01, 40), 3.0, 500),
        MetricValue("modes_found", 38, None, None, 500),
    ]


@pytest.fixture
def warnings():
    return (
        RunWarning("few-restarts", "12% of the samples never received a draw.", "Raise the budget."),
        RunWarning("nan", "3 of 100 evaluations [of them] gave NaN.", "Mend the density."),
    )


@pytest.fixture
def flat_tempering():
    betas = geometric_schedule(5, 1e-3, with_zero=False)
    return _tempering(betas, acceptance=np.linspace(0.5, 0.6, 5), evidence=None)
