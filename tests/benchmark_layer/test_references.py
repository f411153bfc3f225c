"""References are exact or in equilibrium, survive interruptions unchanged, and damage is found."""

import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.benchmark import _symmetries as symmetries
from cdsampler.benchmark import build_target, references
from cdsampler.benchmark.references import (
    LennardJonesHMC,
    NeuralNetworkHMC,
    ReplicaExchangeMD,
    check_samples,
    energies,
    generate_reference,
    load_reference,
    make_reference,
)
from cdsampler.benchmark.references import _autocorrelation as autocorrelation
from cdsampler.benchmark.references import _lennard_jones as clusters
from cdsampler.benchmark.references import _molecular_dynamics as dynamics
from cdsampler.benchmark.references import _reference as files
from cdsampler.benchmark.references import _store as store
from cdsampler.cli import main
from cdsampler.errors import InvalidInputError, MissingExtraError, ReferenceWarning
from cdsampler.targets import LennardJones, icosahedron
from cdsampler.targets.molecules import ForceField, parameters_from_openmm
from cdsampler.targets.molecules import _alanine_dipeptide as dipeptide
from cdsampler.targets.molecules._to_openmm import openmm_system

TRIMER = LennardJonesHMC(
    name="lj-13",  # whose place in the cache it takes
    n=150,
    step_size=0.05,
    leapfrog_steps=10,
    burn_in=60,
    spacing=10,
    chains_per_block=10,
    draws_per_chain=5,
    n_particles=3,
)
SHORT_MD = ReplicaExchangeMD(
    "aldp", 9, n_temperatures=3, hottest_kelvin=500.0, steps_per_frame=5, frames_per_block=4, burn_in_blocks=1
)


@pytest.fixture(scope="module", autouse=True)
def _quick_compilation():
    """Compile without optimisation: these programs run for milliseconds."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep every test's files in a folder of its own."""
    monkeypatch.setenv("CDSAMPLER_CACHE", str(tmp_path))
    return tmp_path / "references"


@pytest.fixture
def run_main(monkeypatch, capsys):
    """Run the command in this process."""

    def run(*arguments):
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr(sys, "argv", ["cdsampler", "reference", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code, *capsys.readouterr()

    return run


def stop_after(n_blocks):
    """Return a progress callback that interrupts the run, as Ctrl-C does."""

    def on_progress(done, total, what):
        assert done <= total
        if done >= n_blocks:
            raise KeyboardInterrupt

    return on_progress


def counting(recipe_class, monkeypatch):
    """Return the list of indices of blocks that get made."""
    made, original = [], recipe_class.block

    def block(self, seed, index, previous):
        made.append(index)
        return original(self, seed, index, previous)

    monkeypatch.setattr(recipe_class, "block", block)
    return made


@pytest.mark.parametrize("name", ["gm-2", "gmnu-16"])
def test_a_mixture_is_sampled_exactly_and_found_again(name, cache):
    first = load_reference(name)
    assert first.is_independent
    assert first.samples.dtype == np.float32
    assert first.samples.shape == (10_000, build_target(name).dim)
    assert (cache / f"{name}.npz").exists()
    second = load_reference(name)
    np.testing.assert_array_equal(first.samples, second.samples)
    assert second.provenance == first.provenance
    assert first.provenance["checksum"] == second.checksum == generate_reference(name).checksum
    assert generate_reference(name, seed=1).checksum != first.checksum
    target = build_target(name)
    weights = np.asarray(target.mode_weights)
    counts = np.asarray(target.responsibilities(jnp.asarray(first.samples, float))).mean(axis=0)
    assert np.all(np.abs(counts - weights) < 5 * np.sqrt(weights * (1 - weights) / 10_000))


def test_n_and_bad_input():
    assert generate_reference("gm-2", n=7).samples.shape == (7, 2)
    with pytest.raises(InvalidInputError, match="n must be a positive integer, got 0"):
        generate_reference("gm-2", n=0)
    with pytest.raises(InvalidInputError, match=r"seed must lie in \[0, 2\^63\), got -1"):
        generate_reference("gm-2", seed=-1)
    with pytest.raises(InvalidInputError, match="Did you mean 'lj-13'"):
        load_reference("lj13")
    with pytest.raises(InvalidInputError, match="no reference for 'gm-2-cartesian'"):
        load_reference("gm-2-cartesian")


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("CDSAMPLER_CACHE", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    assert str(references.cache_folder()) == "/one"
    monkeypatch.delenv("CDSAMPLER_CACHE")
    assert str(references.cache_folder()) == "/two/cdsampler"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/three")
    assert str(references.cache_folder()) == "/three/.cache/cdsampler"
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("CDSAMPLER_CACHE", str(blocked))
    with pytest.raises(InvalidInputError, match="set CDSAMPLER_CACHE to another folder"):
        generate_reference("gm-2")


def _truncate(path):
    path.write_bytes(path.read_bytes()[:1000])


def _scribble(path):
    content = bytearray(path.read_bytes())
    content[5000:5004] = bytes(255 - b for b in content[5000:5004])
    path.write_bytes(bytes(content))


def _change_samples(change):
    def damage(path):
        arrays = files.read_arrays(path)
        arrays["samples"] = change(arrays["samples"])
        files.write_arrays(path, arrays)

    return damage


def _set(array, value):
    array = array.copy()
    array[17, 1] = value
    return array


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_truncate, "can't be read"),
        (_scribble, "can't be read"),
        (lambda path: path.write_bytes(b""), "can't be read"),
        (_change_samples(lambda x: _set(x, x[17, 1] * 1.0001)), "checksum"),
        (_change_samples(lambda x: _set(x, np.nan)), "aren't finite"),
        (_change_samples(lambda x: x[:, :1]), r"shape \(10000, 1\)"),
        (_change_samples(lambda x: x.astype(float)), "float64"),
    ],
)
def test_a_damaged_file_is_reported_and_made_anew(damage, words, cache):
    whole = load_reference("gm-2")
    damage(cache / "gm-2.npz")
    with pytest.warns(ReferenceWarning, match=words):
        again = load_reference("gm-2")
    assert again.checksum == whole.checksum
    assert load_reference("gm-2").checksum == whole.checksum


def test_a_file_under_another_name_is_refused(cache):
    generate_reference("gm-2")
    (cache / "gm-2.npz").rename(cache / "gmnu-2.npz")
    with pytest.warns(ReferenceWarning, match="it holds samples of 'gm-2'"):
        load_reference("gmnu-2")


def test_log_weights_belong_to_the_file_and_its_checksum(tmp_path):
    plain = generate_reference("gm-2", n=20)
    weighted = replace(plain, log_weights=np.linspace(-1, 0, 20))
    assert weighted.checksum != plain.checksum
    path = files.write_reference(weighted, tmp_path / "x.npz")
    np.testing.assert_array_equal(files.read_reference(path, "gm-2", 2).log_weights, weighted.log_weights)
    files.write_reference(replace(plain, log_weights=np.zeros(3)), path)
    with pytest.raises(files.CorruptFileError, match=r"shape \(3,\) for 20"):
        files.read_reference(path, "gm-2", 2)


@pytest.fixture(scope="module")
def trimer(tmp_path_factory):
    """A cluster of three, made without interruption."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDSAMPLER_CACHE", str(tmp_path_factory.mktemp("cache")))
        return make_reference(TRIMER)


def test_an_interrupted_run_ends_in_the_same_bits(trimer, cache, monkeypatch):
    assert TRIMER.n_blocks == 3
    made = counting(LennardJonesHMC, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        make_reference(TRIMER, on_progress=stop_after(1))
    assert not (cache / "lj-13.npz").exists()
    finished = sorted(path.stem for path in (cache / "lj-13.partial").glob("*.npz"))
    assert finished
    made.clear()
    steps = []
    again = make_reference(TRIMER, on_progress=lambda *step: steps.append(step))
    assert sorted(made) == [i for i in range(3) if f"{i:05d}" not in finished]
    assert steps[-1][:2] == (3, 3)
    np.testing.assert_array_equal(again.samples, trimer.samples)
    assert again.provenance == {**trimer.provenance, "date": again.provenance["date"]}
    assert not (cache / "lj-13.partial").exists()


def test_the_samples_do_not_depend_on_x64(trimer):
    with jax.enable_x64(False):
        assert make_reference(TRIMER).checksum == trimer.checksum


def test_damaged_blocks_and_those_of_other_runs_are_made_anew(trimer, cache, monkeypatch):
    partial = store.PartialRun(TRIMER, 0, "0.1.0")
    block = TRIMER.block(0, 0, None)
    partial.keep(0, block)
    _truncate(cache / "lj-13.partial" / "00000.npz")
    assert partial.load(0) is None
    partial.keep(0, block)
    assert store.PartialRun(TRIMER, 0, "0.1.0").load(0) is not None
    for recipe, seed, version in ((TRIMER, 1, "0.1.0"), (replace(TRIMER, spacing=11), 0, "0.1.0"), (TRIMER, 0, "0.2")):
        store.PartialRun(TRIMER, 0, "0.1.0").keep(0, block)
        assert store.PartialRun(recipe, seed, version).load(0) is None


def test_the_cluster_obeys_its_virial_identity_from_either_start(trimer):
    target = LennardJones(3)
    positions = trimer.samples.astype(float).reshape(-1, 3, 3)
    np.testing.assert_allclose(positions.sum(axis=1), 0, atol=1e-6)
    q = jax.vmap(target.from_positions)(jnp.asarray(positions))
    _, gradient = jax.vmap(target.value_and_gradient)(q)
    # E[q · ∇E] is the dimension, for any density on the whole space.
    virial = -np.sum(np.asarray(q) * np.asarray(gradient), axis=1)
    error = virial.std() / np.sqrt(len(virial) / trimer.provenance["energy_autocorrelation_draws"])
    assert abs(virial.mean() - 6) < 4 * error
    assert abs(trimer.provenance["starts_z"]) < 4
    assert 0.6 < trimer.provenance["acceptance"] <= 1
    assert trimer.provenance["n"] == 150
    # Permutations and O(3): each particle's mean position is zero, and its second moments are isotropic.
    radius = np.sqrt((positions**2).sum(axis=2).mean() / 3)
    assert np.all(np.abs(positions.mean(axis=0)) < 4 * radius / np.sqrt(150))


def test_random_symmetries_are_orthogonal_and_half_of_them_reflections():
    basis = np.tile(np.eye(3).reshape(1, -1), (2000, 1))
    q = symmetries.of_cluster(np.random.default_rng(0), basis).reshape(-1, 3, 3)
    np.testing.assert_allclose(q @ np.swapaxes(q, 1, 2), np.broadcast_to(np.eye(3), q.shape), atol=1e-12)
    assert abs(np.mean(np.linalg.det(q) > 0) - 0.5) < 4 * 0.5 / np.sqrt(2000)
    # Entries of a uniform matrix have mean 0 and variance 1/3, and variance of the square 4/45.
    assert np.all(np.abs(q.mean(axis=0)) < 4.5 / np.sqrt(3 * 2000))
    assert np.all(np.abs((q**2).mean(axis=0) - 1 / 3) < 4.5 * np.sqrt(4 / 45 / 2000))


@pytest.mark.parametrize(("n", "least"), [(13, -44.326801), (55, -279.248470)])
def test_the_clusters_start_at_the_known_global_minimum(n, least):
    target = LennardJones(n)
    q = jnp.asarray(clusters._minimum(n))
    trap = 0.5 * float(jnp.sum(target.to_positions(q) ** 2))
    pairs = (-float(target.log_density(q)) - trap) / 2
    # The trap presses the cluster by a little.
    assert least <= pairs < least * 0.985


def test_the_network_keeps_chains_from_the_prior_only():
    recipe = NeuralNetworkHMC(
        "bnn", 6, step_size=1e-4, leapfrog_steps=2, burn_in=1, spacing=1, chains_per_block=4, draws_per_chain=2
    )
    reference = make_reference(recipe)
    assert reference.samples.shape == (6, 550)
    assert "Nobody can prove" in reference.provenance["caveat"]
    assert reference.provenance["n_chains"] == 3
    prior, truth = (reference.provenance[f"energy_of_{kind}_starts"][0] for kind in ("prior", "true_parameter"))
    assert truth < prior


def test_starts_that_disagree_are_reported():
    # Chains that hardly move remember where they started.
    stuck = {"burn_in": 0, "spacing": 1, "step_size": 1e-5, "leapfrog_steps": 1}
    cold = replace(TRIMER, n_particles=13, n=40, chains_per_block=40, **stuck)
    with pytest.warns(ReferenceWarning, match="standard errors apart"):
        make_reference(cold)


def test_the_packaged_molecule_is_in_the_l_form_at_its_known_energy(cache):
    reference = load_reference("aldp")
    assert not reference.is_independent
    assert load_reference("aldp-cartesian").checksum == reference.checksum
    assert not cache.exists()
    assert np.all(dynamics.chiral_volumes(reference.samples) > 0)
    values = energies("aldp", reference.samples)
    moments = references.energy_moments(values, reference.autocorrelation)
    assert abs(moments.mean + 44.74) < 4 * moments.mean_error
    assert "openmmtools" in reference.provenance["source"]
    (cache).mkdir(parents=True)
    (cache / "aldp.npz").write_bytes(b"rubbish")
    with pytest.warns(ReferenceWarning, match="the packaged one is used"):
        assert load_reference("aldp").checksum == reference.checksum


def test_what_takes_long_is_not_made_without_being_asked_for():
    with pytest.raises(InvalidInputError, match="cdsampler reference aldp-implicit --regenerate"):
        load_reference("aldp-implicit-cartesian")


@pytest.mark.parametrize("environment", ["vacuum", "implicit"])
def test_the_openmm_system_has_the_force_fields_energies(environment):
    openmm = pytest.importorskip("openmm")
    parameters = dipeptide.parameters(environment)
    system = openmm_system(parameters, np.full(22, 12.0))
    platform = openmm.Platform.getPlatformByName("Reference")
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), platform)
    force_field = ForceField(parameters)
    rng = np.random.default_rng(0)
    for positions in (dipeptide.minimum_positions_nm(), dipeptide.test_positions_nm()):
        for shaken in (positions, positions + 0.005 * rng.standard_normal(positions.shape)):
            context.setPositions(shaken)
            energy = context.getState(getEnergy=True).getPotentialEnergy()._value
            assert energy == pytest.approx(float(force_field.energy(jnp.asarray(shaken))), abs=1e-3)
    again = ForceField(parameters_from_openmm(system))
    assert float(again.energy(jnp.asarray(positions))) == pytest.approx(
        float(force_field.energy(jnp.asarray(positions))), abs=1e-9
    )
    with pytest.raises(InvalidInputError, match="22 positive numbers"):
        openmm_system(parameters, [1.0])


def test_without_openmm_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openmm", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cdsampler\[molecules\]'"):
        generate_reference("aldp-implicit")
    with pytest.raises(ImportError):
        generate_reference("aldp")


@pytest.mark.parametrize("name", ["aldp", "aldp-implicit"])
def test_interrupted_molecular_dynamics_ends_in_the_same_bits(name, monkeypatch):
    pytest.importorskip("openmm")
    recipe = replace(SHORT_MD, name=name)
    assert recipe.n_blocks == 4
    whole = make_reference(recipe, seed=5)
    assert whole.samples.shape == (9, 66)
    made = counting(ReplicaExchangeMD, monkeypatch)
    for stop in (1, 3):
        with pytest.raises(KeyboardInterrupt):
            make_reference(recipe, seed=5, on_progress=stop_after(stop))
    again = make_reference(recipe, seed=5)
    assert made == [0, 1, 2, 3]
    np.testing.assert_array_equal(again.samples, whole.samples)
    assert again.provenance["versions"]["openmm"]
    np.testing.assert_allclose(whole.samples.reshape(-1, 22, 3).mean(axis=1), 0, atol=1e-7)


def test_replicas_exchange_when_that_is_downhill_and_keep_their_temperatures():
    pytest.importorskip("openmm")
    replicas = dynamics._Replicas(SHORT_MD, 0, 0)
    rng = np.random.default_rng(0)
    replicas.start(rng)
    replicas.velocities = np.ones_like(replicas.velocities)
    replicas.positions += np.arange(3)[:, None, None]
    # The cold replica has the higher energy: an exchange raises the joint density, so it's certain.
    replicas.energies = np.array([50.0, -50.0, 0.0])
    assert replicas.exchange(rng, parity=0).tolist() == [1, 1]
    assert replicas.energies.tolist() == [-50, 50, 0]
    assert replicas.positions[1, 0, 0] == pytest.approx(replicas.positions[0, 0, 0] - 1)
    cold, warm = SHORT_MD.temperatures[:2]
    np.testing.assert_allclose(replicas.velocities[0], np.sqrt(cold / warm))
    np.testing.assert_allclose(replicas.velocities[1], np.sqrt(warm / cold))
    # Far uphill it's all but impossible.
    replicas.energies = np.array([-5000.0, 5000.0, 0.0])
    assert replicas.exchange(rng, parity=0).tolist() == [0, 1]


@pytest.mark.parametrize("a", [0.0, 0.5, 0.8])
def test_the_autocorrelation_of_an_autoregression_is_known(a):
    rng = np.random.default_rng(1)
    x = np.zeros((50, 400))
    x[:, 0] = rng.standard_normal(50)
    for t in range(1, 400):
        x[:, t] = a * x[:, t - 1] + np.sqrt(1 - a * a) * rng.standard_normal(50)
    exact = (1 + a) / (1 - a)
    assert autocorrelation.of_chains(x) == pytest.approx(exact, rel=0.1)
    assert autocorrelation.of_series(x.reshape(-1)) == pytest.approx(exact, rel=0.15)
    assert len(autocorrelation.thinned(x[0], exact)) == -(-400 // round(exact))


def test_samples_of_the_same_target_pass_the_check_and_others_fail():
    reference = generate_reference("gm-2")
    same = check_samples(reference, generate_reference("gm-2", seed=1, n=5000).samples)
    assert same.ks_p > 1e-3
    assert abs(same.mean_z) < 4
    assert abs(same.sd_z) < 4
    assert same.n_mirrored == 0
    rng = np.random.default_rng(0)
    other = check_samples(reference, reference.samples + 0.5 * rng.standard_normal(reference.samples.shape))
    assert other.ks_p < 1e-6
    assert other.mean_z > 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x[:, :60], r"must have shape \(n, 66\), got \(60, 60\)"),
        (lambda x: x.reshape(-1, 22, 3), r"must have shape \(n, 66\)"),
        (lambda x: x[:5], "5 samples are too few"),
        (lambda x: _set(x, np.nan), "1 of 60 samples hold numbers that aren't finite"),
        (lambda x: 10 * x, "times the reference's.*ångström"),
        (lambda x: x[:, ::-1], "check the unit and the order of atoms"),
    ],
)
def test_a_file_that_cannot_be_compared_is_refused_with_the_reason(change, words):
    reference = load_reference("aldp")
    with pytest.raises(InvalidInputError, match=words):
        check_samples(reference, change(reference.samples[:60]))


def test_units_of_sigma_and_mirror_forms_are_noticed(trimer):
    samples = icosahedron(13).reshape(1, -1) + 0.01 * np.random.default_rng(0).standard_normal((20, 39))
    reference = replace(trimer, samples=samples.astype(np.float32))
    with pytest.raises(InvalidInputError, match="units of σ"):
        check_samples(reference, samples * 2 ** (1 / 6))
    molecule = load_reference("aldp")
    assert check_samples(molecule, -molecule.samples[:500]).n_mirrored == 500


def test_the_command_lists_makes_and_checks(run_main, tmp_path):
    code, out, _ = run_main()
    assert code == 0
    for word in ("lj-55", "made on first use", "packaged", "to be made"):
        assert word in out
    code, out, _ = run_main("gm-2", "--regenerate", "--seed", "3", "--samples", "2000")
    assert code == 0
    made = load_reference("gm-2")
    unwrapped = "".join(out.split())  # long words are broken over lines where the terminal is narrow
    for word in ("2,000ofdimension2", "exactsampling", "seed3", made.checksum, str(tmp_path)):
        assert word in unwrapped
    np.save(tmp_path / "mine.npy", generate_reference("gm-2", seed=9).samples)
    code, out, _ = run_main("gm-2", "--check", str(tmp_path / "mine.npy"))
    assert code == 0
    assert "Kolmogorov-Smirnov" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gm-3"], "choose from gm-2"),
        (["gm-2", "--seed", "1"], "--seed belongs to a new run: give --regenerate"),
        (["gm-2", "--regenerate", "--samples", "0"], "--samples must be at least 1, got 0"),
        (["--regenerate"], "Name a target"),
        (["gm-2", "--check", "/nowhere.npy"], "Can't read samples from /nowhere.npy"),
        (["aldp-implicit"], "--regenerate"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(arguments, words, run_main):
    code, out, err = run_main(*arguments)
    assert code == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert words in err


def test_the_command_reports_damage(run_main, cache):
    generate_reference("gm-2")
    _truncate(cache / "gm-2.npz")
    code, out, _ = run_main("gm-2")
    assert code == 0
    assert "Warning" in out
    assert "is damaged" in out
