import numpy as np
import pytest

from cdsampler.errors import InvalidInputError
from cdsampler.metrics.dihedrals import c7ax_indicator, dihedral_angles
from cdsampler.metrics.ramachandran import BOLTZMANN, basin_weight, free_energy_rmse, ramachandran_kl

QUADRUPLE = [[0, 1, 2, 3]]


def twisted(angle):
    """Four atoms, the far bond turned clockwise by angle when seen along the middle one, +x."""
    far = [1.0, np.cos(angle), np.sin(angle)]
    return [[0.0, 1, 0], [0, 0, 0], [1, 0, 0], far]


def in_cell(row, column, n, bins=4):
    """Give n pairs of angles at the centre of a cell."""
    centre = -np.pi + (np.array([row, column]) + 0.5) * 2 * np.pi / bins
    return np.tile(centre, (n, 1))


def test_known_dihedral_angles():
    expected = np.array([0, 0.3, np.pi / 2, 3, np.pi, -0.3, -np.pi / 2, -3])
    observed = dihedral_angles([twisted(angle) for angle in expected], QUADRUPLE)
    np.testing.assert_allclose(observed[:, 0], expected, atol=1e-12)


def test_trans_is_plus_pi_whatever_the_sign_of_zero():
    for zero in (0.0, -0.0):
        trans = [[[0.0, 1, zero], [0, 0, zero], [1, 0, zero], [1, -1, zero]]]
        assert dihedral_angles(trans, QUADRUPLE)[0, 0] == np.pi
        assert dihedral_angles(trans, [[3, 2, 1, 0]])[0, 0] == np.pi


def test_dihedral_symmetries(rng):
    x = rng.standard_normal((50, 6, 3))
    quadruples = np.array([[0, 1, 2, 3], [5, 2, 4, 1]])
    angles = dihedral_angles(x, quadruples)
    assert angles.shape == (50, 2)
    np.testing.assert_allclose(dihedral_angles(x, quadruples[:, ::-1]), angles, atol=1e-12)
    np.testing.assert_allclose(dihedral_angles(x * np.array([[[-1.0, 1, 1]]]), quadruples), -angles, atol=1e-12)


def test_dihedral_angles_agree_with_mdtraj(rng):
    mdtraj = pytest.importorskip("mdtraj")
    topology = mdtraj.Topology()
    residue = topology.add_residue("ALA", topology.add_chain())
    for i in range(6):
        topology.add_atom(f"C{i}", mdtraj.element.carbon, residue)
    x = rng.standard_normal((40, 6, 3))
    quadruples = np.array([[0, 1, 2, 3], [5, 2, 4, 1], [1, 0, 4, 3]])
    expected = mdtraj.compute_dihedrals(mdtraj.Trajectory(x, topology), quadruples)  # float32
    gaps = dihedral_angles(x, quadruples) - expected
    assert np.abs(np.arctan2(np.sin(gaps), np.cos(gaps))).max() < 1e-3


def test_bad_dihedrals_are_refused(rng):
    x = rng.standard_normal((3, 5, 3))
    with pytest.raises(InvalidInputError, match="positions has shape"):
        dihedral_angles(x[0], QUADRUPLE)
    with pytest.raises(InvalidInputError, match="quadruples has shape"):
        dihedral_angles(x, [0, 1, 2, 3])
    with pytest.raises(InvalidInputError, match="type float64"):
        dihedral_angles(x, [[0.0, 1, 2, 3]])
    with pytest.raises(InvalidInputError, match="atoms 0 to 5"):
        dihedral_angles(x, [[0, 1, 2, 5]])
    with pytest.raises(InvalidInputError, match="1 of 3 rows"):
        dihedral_angles(np.where(np.arange(3)[:, None, None] == 1, np.inf, x), QUADRUPLE)
    with pytest.raises(InvalidInputError, match="3 of 3 dihedral angles are undefined"):
        dihedral_angles(x, [[0, 1, 1, 2]])


def test_c7ax_is_the_side_of_positive_phi():
    phi = np.array([[-3.0, -0.1, 0.0], [0.1, 3.0, np.pi]])
    np.testing.assert_array_equal(c7ax_indicator(phi), [[False, False, False], [True, True, False]])
    assert c7ax_indicator(1 + 2 * np.pi)
    assert not c7ax_indicator(-1 - 4 * np.pi)
    with pytest.raises(InvalidInputError, match="1 of 2 angles"):
        c7ax_indicator([0.0, np.nan])


def test_known_divergences():
    reference = np.concatenate([in_cell(0, 0, 6), in_cell(2, 1, 2)])
    sample = np.concatenate([in_cell(0, 0, 2), in_cell(2, 1, 2)])
    p = (np.array([6, 2] + 14 * [0]) + 0.5) / 16
    q = (np.array([2, 2] + 14 * [0]) + 0.5) / 12
    assert ramachandran_kl(sample, reference, 4) == pytest.approx((p * np.log(p / q)).sum())
    assert ramachandran_kl(reference, reference, 4) == pytest.approx(0, abs=1e-12)
    exact = 0.75 * np.log(0.75 / 0.5) + 0.25 * np.log(0.25 / 0.5)
    assert ramachandran_kl(sample, reference, 4, None, epsilon=1e-10) == pytest.approx(exact, abs=1e-8)


def test_a_missed_bin_costs_little_by_pseudocounts_and_much_by_the_published_epsilon():
    reference = np.concatenate([in_cell(0, 0, 990), in_cell(2, 1, 10)])
    sample = in_cell(0, 0, 1000)
    assert ramachandran_kl(sample, reference, 4) < 0.03
    published = ramachandran_kl(sample, reference, 4, None, epsilon=1e-10)
    assert published == pytest.approx(0.01 * np.log(0.01 / 1e-10) + 0.99 * np.log(0.99), rel=1e-6)
    assert published > 0.17


def test_divergence_lives_on_the_torus(rng):
    x, y = rng.uniform(-np.pi, np.pi, (2, 500, 2))
    turns = 2 * np.pi * rng.integers(-3, 4, (500, 2))
    assert ramachandran_kl(x + turns, y, 6) == pytest.approx(ramachandran_kl(x, y, 6))
    assert ramachandran_kl([[np.pi, -np.pi]], [[-np.pi, np.pi]]) == pytest.approx(0, abs=1e-12)


def test_divergence_of_exact_samples_is_at_its_theoretical_floor(rng):
    # For large counts KL is χ²/2: (bins² − 1) (1/n + 1/m) / 2.
    n, bins = 50_000, 10
    x, y, shifted = rng.uniform(-np.pi, np.pi, (3, n, 2))
    floor = (bins**2 - 1) / n
    spread = floor * np.sqrt(2 / (bins**2 - 1))
    assert ramachandran_kl(x, y, bins) == pytest.approx(floor, abs=5 * spread)
    shifted += 0.2 * np.sin(shifted)
    assert ramachandran_kl(shifted, y, bins) > 5 * floor


def test_weights_stand_for_repeated_rows():
    reference = np.concatenate([in_cell(0, 0, 1), in_cell(2, 1, 1)])
    sample = np.concatenate([in_cell(0, 0, 3), in_cell(2, 1, 1)])
    options = {"bins": 4, "pseudocount": None, "epsilon": 1e-10}
    assert ramachandran_kl(sample, reference, **options, reference_weights=[3.0, 1.0]) == pytest.approx(0, abs=1e-9)
    assert ramachandran_kl(sample, reference, **options) > 0.1
    assert free_energy_rmse(sample, reference, 4, reference_weights=[3.0, 1.0]) == pytest.approx(0, abs=1e-12)
    assert free_energy_rmse(sample, reference, 4) > 0.1
    # Counts are effective draws: the scale of equal weights is immaterial.
    equal = ramachandran_kl(sample, reference, 4, reference_weights=[7.0, 7.0])
    assert equal == pytest.approx(ramachandran_kl(sample, reference, 4))


def test_known_free_energy_errors():
    reference = np.concatenate([in_cell(0, 0, 50), in_cell(2, 1, 50)])
    sample = np.concatenate([in_cell(0, 0, 80), in_cell(2, 1, 20)])
    kt = BOLTZMANN * 300
    # F differs by ∓kT log(1.6) and ∓kT log(0.4); about their mean that is ±kT log(4)/2.
    assert free_energy_rmse(sample, reference, 4) == pytest.approx(kt * np.log(4) / 2)
    assert free_energy_rmse(sample, reference, 4, temperature_kelvin=600) == pytest.approx(kt * np.log(4))
    assert free_energy_rmse(sample, sample, 4) == 0
    # A missed bin counts as half a draw of 80, so F differs by kT log(80 / 0.5) between the bins.
    assert free_energy_rmse(sample[:80], reference, 4) == pytest.approx(kt * np.log(160) / 2)


def test_free_energy_offset_is_weighted_by_the_reference():
    reference = np.concatenate([in_cell(0, 0, 90), in_cell(2, 1, 10)])
    sample = np.concatenate([in_cell(0, 0, 50), in_cell(2, 1, 50)])
    gap = BOLTZMANN * 300 * np.log(9)
    # The two errors lie a gap apart, about a mean at a tenth of the way from the heavy bin.
    assert free_energy_rmse(sample, reference, 4) == pytest.approx(gap * np.sqrt((0.1**2 + 0.9**2) / 2))
    assert free_energy_rmse(sample, reference, 4, min_probability=0.5) == pytest.approx(0)


def test_bad_histograms_are_refused(rng):
    good = rng.uniform(-3, 3, (10, 2))
    with pytest.raises(InvalidInputError, match="two angles"):
        ramachandran_kl(good[:, :1], good)
    with pytest.raises(InvalidInputError, match="reference: 1 of 1 rows"):
        ramachandran_kl(good, [[0.0, np.nan]])
    with pytest.raises(InvalidInputError, match="bins is 0"):
        free_energy_rmse(good, good, 0)
    for pseudocount, epsilon in ((None, None), (0.5, 1e-10)):
        with pytest.raises(InvalidInputError, match="pass one of them"):
            ramachandran_kl(good, good, pseudocount=pseudocount, epsilon=epsilon)
    with pytest.raises(InvalidInputError, match="pseudocount is 0"):
        ramachandran_kl(good, good, pseudocount=0)
    with pytest.raises(InvalidInputError, match="epsilon is inf"):
        ramachandran_kl(good, good, pseudocount=None, epsilon=np.inf)
    for weights in (np.ones(9), np.zeros(10), -np.ones(10)):
        with pytest.raises(InvalidInputError, match="reference_weights has"):
            ramachandran_kl(good, good, reference_weights=weights)
    with pytest.raises(InvalidInputError, match="No bin holds"):
        free_energy_rmse(good, good, min_probability=0.99)
    with pytest.raises(InvalidInputError, match="min_probability is -1"):
        free_energy_rmse(good, good, min_probability=-1)
    with pytest.raises(InvalidInputError, match="temperature_kelvin is 0"):
        free_energy_rmse(good, good, temperature_kelvin=0)


def sticky(rng, chains, draws, leave):
    """Chains of a two-state Markov process that leaves either state with that probability."""
    switches = rng.random((chains, draws)) < leave
    start = rng.integers(0, 2, (chains, 1))
    return (start + np.cumsum(switches, axis=1)) % 2 == 1


def test_known_basin_weights():
    chains = np.zeros((8, 10), dtype=bool)
    chains[:4] = True
    weight, error, n = basin_weight(chains)
    assert (weight, n) == (0.5, 80)
    assert error == pytest.approx(np.sqrt(2 / 7) / np.sqrt(8))  # squares 8/4 over 7
    assert basin_weight(chains.ravel(), (8, 10)) == (weight, error, n)
    assert basin_weight(np.zeros(100, dtype=bool)) == (0, 0, 100)
    # Batches of 2: means 1, 1/2, dropping the first draw.
    assert basin_weight([False, True, True, False, True]) == pytest.approx((0.6, np.sqrt(1 / 8) / np.sqrt(2), 5))


@pytest.mark.parametrize("chains", [1, 4, 16])
@pytest.mark.parametrize("leave", [0.5, 0.2])
def test_basin_errors_are_calibrated(rng, chains, leave):
    # Correlation (1 − 2 leave)^k: the variance of a mean is (1 − leave) / leave times that of n free draws.
    draws, repeats = 3600, 200
    results = [basin_weight(sticky(rng, chains, draws, leave)) for _ in range(repeats)]
    truth = np.sqrt((1 - leave) / leave / 4 / (chains * draws))
    errors = np.array([result.standard_error for result in results])
    scores = np.array([(result.weight - 0.5) / result.standard_error for result in results])
    assert np.sqrt((errors**2).mean()) == pytest.approx(truth, rel=0.08)  # batches of 60 miss 3 % at leave 0.2
    # Student's t with at least 15 degrees of freedom: variance at most 1.16; its estimate has error 0.11.
    assert 0.65 < (scores**2).mean() < 1.6


def test_naive_errors_would_fail_the_calibration(rng):
    inside = sticky(rng, 1, 3600, 0.2)
    naive = np.sqrt(inside.mean() * (1 - inside.mean()) / inside.size)
    assert basin_weight(inside).standard_error > 1.5 * naive  # theory: 2


def test_bad_basins_are_refused():
    with pytest.raises(InvalidInputError, match="in_basin has shape"):
        basin_weight([True])
    with pytest.raises(InvalidInputError, match="in_basin has shape"):
        basin_weight(np.ones((2, 2, 2)))
    for shape in ((2, 3), (-2, -4), (8, 0)):
        with pytest.raises(InvalidInputError, match="chain_shape is"):
            basin_weight(np.ones(8), shape)
    with pytest.raises(InvalidInputError, match=r"ranges from 0\.0 to 2\.0"):
        basin_weight([0.0, 2.0])
    with pytest.raises(InvalidInputError, match="ranges from"):
        basin_weight([0.0, np.nan])
