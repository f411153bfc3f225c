"""Write the packaged parameters of alanine dipeptide anew from openmmtools' test systems.

Needs `pip install openmm openmmtools`. The library needs neither: it reads the file that this writes.

    python benchmarks/package_molecule.py
"""

import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from openmm import unit
from openmmtools.testsystems import AlanineDipeptideImplicit
from scipy.optimize import minimize

from cdsampler.targets.molecules import ForceField, parameters_from_openmm

FILE = Path(__file__).parent.parent / "src/cdsampler/targets/molecules/data/alanine_dipeptide.json"


def main() -> None:
    """Convert, minimise in vacuum and write."""
    jax.config.update("jax_enable_x64", True)
    system = AlanineDipeptideImplicit(constraints=None)
    parameters = parameters_from_openmm(system.system)
    positions = system.positions.value_in_unit(unit.nanometer)
    vacuum = ForceField(replace(parameters, solvent=None))
    value_and_grad = jax.jit(jax.value_and_grad(lambda x: vacuum.energy(x.reshape(-1, 3))))
    found = minimize(
        lambda x: tuple(np.asarray(a, dtype=np.float64) for a in value_and_grad(jnp.asarray(x))),
        np.ravel(positions),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-6},
    )
    minimum = found.x.reshape(-1, 3)
    content = {
        "provenance": (
            "AlanineDipeptideImplicit(constraints=None) of openmmtools "
            f"{version('openmmtools')} (MIT licence), read with OpenMM {version('openmm')}; "
            "force field ff96 with OBC1; vacuum is the same without the solvent. "
            f"The minimum is that of the vacuum energy ({found.fun:.6f} kJ/mol) by L-BFGS from the test positions."
        ),
        "units": "nm, kJ/mol, rad, elementary charges",
        "atom_names": [atom.name for atom in system.topology.atoms()],
        "test_positions_nm": np.asarray(positions).round(9).tolist(),
        "minimum_positions_nm": (minimum - minimum.mean(axis=0)).round(9).tolist(),
        "force_field": parameters.to_json(),
    }
    FILE.write_text(json.dumps(content) + "\n")
    print(f"Wrote {FILE}: minimum {found.fun:.6f} kJ/mol, {found.nfev} evaluations.")


if __name__ == "__main__":
    main()
