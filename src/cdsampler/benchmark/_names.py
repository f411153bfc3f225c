import difflib
from collections.abc import Iterable

from cdsampler.errors import InvalidInputError


def known(name: str, names: Iterable[str], kind: str) -> str:
    """Return the name if it is one of `names`.

    Raises
    ------
    InvalidInputError
        It isn't; the message lists the names, and the nearest one.
    """
    options = list(names)
    if name in options:
        return name
    near = difflib.get_close_matches(name, options, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise InvalidInputError(f"Unknown {kind} {name!r}: choose from {', '.join(options)}.{hint}")
