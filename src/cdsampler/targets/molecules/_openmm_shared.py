"""What both directions of the conversion share: OpenMM itself, and the formulas of its solvent."""

import importlib
from typing import Any

from cdsampler.errors import MissingExtraError

# Without spaces. OpenMM's own force-field files write the same but for spaces.
SCREENING = (
    "select(step(r+sr2-or1),0.5*(1/L-1/U+0.25*(r-sr2^2/r)*(1/(U^2)-1/(L^2))+0.5*log(L/U)/r),0);"
    "U=r+sr2;L=max(or1,D);D=abs(r-sr2)"
)
GB_PAIR = "charge1*charge2/f;f=sqrt(r^2+B1*B2*exp(-r^2/(4*B1*B2)))"


def import_openmm() -> Any:
    """Return the module `openmm`, with `openmm.unit`.

    Raises
    ------
    MissingExtraError
        OpenMM isn't installed; an `ImportError`, too.
    """
    try:
        openmm = importlib.import_module("openmm")  # by name: a default install has no OpenMM
        importlib.import_module("openmm.unit")
    except ImportError as error:
        raise MissingExtraError("Molecules from or for OpenMM need it: pip install 'cdsampler[molecules]'.") from error
    return openmm
