import jax.numpy as jnp
import numpy as np

from cdsampler import MALA, NRPT, FlatReference, LogDensity, geometric_schedule, run


def test_a_flat_path_is_judged_by_round_trips_since_it_has_no_draws():
    density = LogDensity(lambda y: -0.5 * jnp.sum(y**2), 2)
    betas = geometric_schedule(3, 0.1, with_zero=False)
    short = NRPT(FlatReference(), betas, MALA(0.5), 3, start="anchor")
    codes = [w.code for w in run(short, density, 64, anchor=np.zeros(2)).warnings]
    assert codes == ["few-round-trips"]
    long = run(short.with_steps(120), density, 64, anchor=np.zeros(2))
    assert long.warnings == ()
