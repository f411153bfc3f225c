import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cdsampler.benchmark._dihedrals import backbone_angles
from cdsampler.benchmark._rows import by_row
from cdsampler.benchmark.references import _autocorrelation
from cdsampler.benchmark.references._recipe import AbstractRecipe, Block, Draws
from cdsampler.errors import DensityError
from cdsampler.targets.molecules import _alanine_dipeptide as dipeptide
from cdsampler.targets.molecules._molecule import GAS_CONSTANT, chiral_volume
from cdsampler.targets.molecules._openmm_shared import import_openmm
from cdsampler.targets.molecules._to_openmm import openmm_system

MASSES_DALTON = {"H": 1.008, "C": 12.011, "N": 14.007, "O": 15.999}
STEP_PS = 0.001


@dataclass(frozen=True)
class ReplicaExchangeMD(AbstractRecipe):
    """Molecular dynamics of alanine dipeptide at several temperatures that exchange configurations; the coldest counts.

    Parameters
    ----------
    name
        "aldp" or "aldp-implicit".
    n
        Frames.
    n_temperatures
        Geometrically spaced from 300 K to `hottest_kelvin`.
    hottest_kelvin
    steps_per_frame
        Of 1 fs, between attempts to exchange neighbours; each attempt ends in a frame.
    frames_per_block
    burn_in_blocks
        Left out.
    friction_per_ps

    Notes
    -----
    Each block starts new simulations, seeded by its number, from the last configurations and velocities of the block
    before: so it doesn't matter where a run was interrupted.
    """

    n_temperatures: int = 8
    hottest_kelvin: float = 1000.0
    steps_per_frame: int = 400
    frames_per_block: int = 50
    burn_in_blocks: int = 4
    friction_per_ps: float = 1.0
    is_sequential: ClassVar[bool] = True
    method: ClassVar[str] = "replica-exchange molecular dynamics with OpenMM"

    @property
    def minutes(self) -> float:  # type: ignore[override]
        """About how long it takes: OpenMM interprets the solvent's formulas."""
        million_steps = self.n * self.steps_per_frame * self.n_temperatures / 1e6
        return million_steps * (3.0 if self._environment == "implicit" else 0.15)

    @property
    def dim(self) -> int:
        """Coordinates of all atoms."""
        return 3 * len(dipeptide.atom_names())

    @property
    def n_blocks(self) -> int:
        """Those left out, and as many as make up the frames."""
        return self.burn_in_blocks - (-self.n // self.frames_per_block)

    @property
    def temperatures(self) -> np.ndarray:
        """Temperatures in K, shape (n_temperatures,)."""
        return np.geomspace(300.0, self.hottest_kelvin, self.n_temperatures)

    def versions(self) -> dict[str, str]:
        """Return OpenMM's version; raise `MissingExtraError` without it."""
        return {"openmm": import_openmm().Platform.getOpenMMVersion()}

    def block(self, seed: int, index: int, previous: Block | None) -> Block:
        """Go on from the block before for some frames."""
        replicas = _Replicas(self, seed, index)
        rng = np.random.Generator(np.random.PCG64([seed, index, 0]))
        if previous is None:
            replicas.start(rng)
        else:
            replicas.positions = previous["last_positions"].copy()
            replicas.velocities = previous["last_velocities"].copy()
        frames, energies, accepted = [], [], np.zeros(2)
        for frame in range(self.frames_per_block):
            replicas.step()
            accepted += replicas.exchange(rng, parity=frame % 2)
            frames.append(replicas.positions[0] - replicas.positions[0].mean(axis=0))
            energies.append(replicas.energies[0])
        return {
            "samples": np.array(frames, dtype=np.float32).reshape(len(frames), -1),
            "energy": np.array(energies),
            "exchanges": accepted,
            "last_positions": replicas.positions,
            "last_velocities": replicas.velocities,
        }

    def assemble(self, blocks: Sequence[Block]) -> Draws:
        """Join the frames, check their handedness, and measure autocorrelations."""
        kept = blocks[self.burn_in_blocks :]
        samples = np.concatenate([block["samples"] for block in kept])[: self.n]
        energy = np.concatenate([block["energy"] for block in kept])[: self.n]
        n_mirrored = int(np.count_nonzero(chiral_volumes(samples) <= 0))
        if n_mirrored:
            raise DensityError(
                f"{n_mirrored} of {len(samples)} frames of {self.name} have the mirror form: the bonds were broken at "
                f"{self.hottest_kelvin:.0f} K; lower hottest_kelvin."
            )
        angles = backbone_angles(samples)
        accepted, tried = np.sum([block["exchanges"] for block in kept], axis=0)
        tau = _autocorrelation.of_series(energy)
        facts = {
            "md_steps": len(blocks) * self.frames_per_block * self.steps_per_frame * self.n_temperatures,
            "exchange_rate": float(accepted / tried),
            "energy_mean": float(energy.mean()),
            "energy_standard_error": float(energy.std() * np.sqrt(tau / len(energy))),
            "energy_sd": float(energy.std()),
            "autocorrelation_frames": {
                "energy": tau,
                "cos φ": _autocorrelation.of_series(np.cos(angles[:, 0])),
                "cos ψ": _autocorrelation.of_series(np.cos(angles[:, 1])),
                "φ > 0": _autocorrelation.of_series((angles[:, 0] > 0).astype(np.float64)),
            },
            "weight_of_positive_phi": float(np.mean(angles[:, 0] > 0)),
        }
        return Draws(samples, is_independent=False, autocorrelation=tau, facts=facts)

    @property
    def _environment(self) -> str:
        return "implicit" if self.name == "aldp-implicit" else "vacuum"


def chiral_volumes(samples: np.ndarray) -> np.ndarray:
    """Return the volume in nm³ at the chiral carbon, positive in the L form: shape (n,) of samples (n, 66)."""
    return by_row(lambda row: chiral_volume(row.reshape(-1, 3), dipeptide.CHIRAL_CENTRE))(samples)


class _Replicas:
    """One simulation for each temperature.

    The solvent needs OpenMM's platform "CPU", where each simulation has its own random numbers and they can run side
    by side. In vacuum the platform "Reference" is ten times as fast, but its simulations share their random numbers:
    they take turns.
    """

    def __init__(self, recipe: ReplicaExchangeMD, seed: int, index: int) -> None:
        openmm = import_openmm()
        self.n_steps = recipe.steps_per_frame
        self.beta = 1 / (GAS_CONSTANT * recipe.temperatures)
        self.masses = np.array([MASSES_DALTON[name[0]] for name in dipeptide.atom_names()])
        has_solvent = recipe._environment == "implicit"
        platform = openmm.Platform.getPlatformByName("CPU" if has_solvent else "Reference")
        self.n_threads = min(len(self.beta), os.cpu_count() or 1) if has_solvent else 1
        system = openmm_system(dipeptide.parameters(recipe._environment), self.masses)
        seeds = np.random.SeedSequence([seed, index, 1]).generate_state(len(self.beta)) % (2**31 - 1) + 1
        self.contexts = []
        for temperature, number in zip(recipe.temperatures, seeds, strict=True):
            integrator = openmm.LangevinMiddleIntegrator(float(temperature), recipe.friction_per_ps, STEP_PS)
            integrator.setRandomNumberSeed(int(number))
            # One thread for each: their order of summation, and hence the last bit, would depend on chance.
            options = {"Threads": "1"} if has_solvent else {}
            self.contexts.append(openmm.Context(system, integrator, platform, options))
        self.positions = np.zeros((len(self.beta), len(self.masses), 3))
        self.velocities = np.zeros_like(self.positions)
        self.energies = np.zeros(len(self.beta))

    def start(self, rng: np.random.Generator) -> None:
        """Put all replicas at the minimum, with velocities of their temperatures."""
        self.positions[:] = dipeptide.minimum_positions_nm()
        width = 1 / np.sqrt(self.beta[:, None, None] * self.masses[None, :, None])
        self.velocities = width * rng.standard_normal(self.positions.shape)

    def step(self) -> None:
        """Run every replica to its next frame."""
        with ThreadPoolExecutor(self.n_threads) as pool:
            for k, state in enumerate(pool.map(self._run, range(len(self.contexts)))):
                self.positions[k], self.velocities[k], self.energies[k] = state

    def exchange(self, rng: np.random.Generator, parity: int) -> np.ndarray:
        """Try to exchange every other pair of neighbours; return how many were, and how many were tried."""
        counts = np.zeros(2)
        for low in range(parity, len(self.beta) - 1, 2):
            high = low + 1
            log_ratio = (self.beta[low] - self.beta[high]) * (self.energies[low] - self.energies[high])
            counts[1] += 1
            if np.log(rng.random()) >= log_ratio:
                continue
            counts[0] += 1
            pair, swapped = [low, high], [high, low]
            self.positions[pair], self.energies[pair] = self.positions[swapped], self.energies[swapped]
            # Velocities are scaled to the new temperature.
            scale = np.sqrt(self.beta[swapped] / self.beta[pair])[:, None, None]
            self.velocities[pair] = scale * self.velocities[swapped]
        return counts

    def _run(self, k: int) -> tuple[np.ndarray, np.ndarray, float]:
        context: Any = self.contexts[k]
        context.setPositions(self.positions[k])
        context.setVelocities(self.velocities[k])
        context.getIntegrator().step(self.n_steps)
        state = context.getState(getPositions=True, getVelocities=True, getEnergy=True)
        # In OpenMM's own units: nm, nm/ps and kJ/mol.
        return (
            state.getPositions(asNumpy=True)._value,
            state.getVelocities(asNumpy=True)._value,
            state.getPotentialEnergy()._value,
        )
