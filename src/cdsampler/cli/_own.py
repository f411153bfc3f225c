"""The command `sample` on a density of the user's."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from cdsampler import __version__, report
from cdsampler._user_code import load_object
from cdsampler.cli._console import console
from cdsampler.cli._progress import ProgressBar, RoundTable
from cdsampler.density import AbstractLogDensity
from cdsampler.errors import InvalidInputError, SamplingWarning
from cdsampler.parameters import Model, Parameter, interval, ordered, positive, positive_definite, real, simplex
from cdsampler.sampling import Result
from cdsampler.sampling import sample as draw

_WITH_SIZE = {"simplex": simplex, "ordered": ordered, "positive_definite": positive_definite}
_WITH_SHAPE = {"real": real, "positive": positive}


def is_own(target: str) -> bool:
    """Whether a target's name is that of a file or a module rather than of the catalog."""
    return ":" in target


def sample_own(
    spec: str,
    n_samples: int,
    seed: int,
    out: Path | None,
    *,
    dim: int | None,
    params: str | None,
    save_plan: Path | None,
    **settings: Any,
) -> None:
    """Draw samples of a user's density by the tuned plan, print what came out, and write the files asked for.

    Parameters
    ----------
    spec
        FILE.py:NAME of a function, a density or a `Model`.
    n_samples, seed
    out
        Folder for the files.
    dim
        Number of coordinates of a plain function.
    params
        JSON, or a JSON file: the parameters of a function of named ones.
    save_plan
        File for the plan.
    **settings
        Further arguments of `cdsampler.sample`.

    Raises
    ------
    InvalidInputError
        A name, a number or a parameter that isn't right.
    """
    structure = None if params is None else parse_parameters(params)
    target = load_object(spec)
    if not isinstance(target, AbstractLogDensity | Model) and dim is None and structure is None:
        raise InvalidInputError(f"Say how many parameters {spec} has with --dim, or name them with --params.")
    rounds = RoundTable(n_samples)
    with ProgressBar(n_samples) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)  # they are shown in a panel of their own
        result = draw(
            target,
            dim,
            n_samples,
            params=structure,
            seed=seed,
            on_round=rounds.add,
            on_progress=bar.update,
            **settings,
        )
    _show(result)
    if save_plan is not None and result.plan is not None:
        console.print(f"Wrote {result.plan.save(save_plan)}.")
    if out is not None:
        _write(out, spec, result)


def parse_parameters(text: str) -> dict[str, Any]:
    """Return the parameters that JSON, or a file of it, describes.

    A parameter is a shape (`[3]`, `[]`), the name of a support (`"real"`, `"positive"`), or an object with one of
    `real`, `positive` (a shape), `interval` (two bounds, either of them null, and optionally `shape`), `simplex`,
    `ordered`, `positive_definite` (a size).

    Raises
    ------
    InvalidInputError
        Not JSON, or something else in it; the message has the parameter's name.
    """
    content = text
    if not text.lstrip().startswith("{"):
        path = Path(text)
        if not path.is_file():
            raise InvalidInputError(f"--params must be a JSON object, or a file of one; there is no file {path}.")
        content = path.read_text()
    try:
        given = json.loads(content)
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"--params is not JSON: {error}.") from error
    if not isinstance(given, dict) or not given:
        raise InvalidInputError(f"--params must be an object with a parameter for each name, got {content[:200]}.")
    return {name: _parameter(name, value) for name, value in given.items()}


def _parameter(name: str, given: Any) -> Parameter:
    if isinstance(given, str):
        given = {given: []}
    if isinstance(given, list):
        given = {"real": given}
    try:
        kind, value = next(iter(given.items()))
        if kind == "interval" and set(given) <= {"interval", "shape"}:
            low, high = value
            return interval(low, high, *given.get("shape", []))
        if len(given) == 1 and kind in _WITH_SHAPE:
            return _WITH_SHAPE[kind](*value)
        if len(given) == 1 and kind in _WITH_SIZE:
            return _WITH_SIZE[kind](value)
    except InvalidInputError as error:
        raise InvalidInputError(f"Parameter {name!r} of --params: {error}") from error
    except (AttributeError, StopIteration, TypeError, ValueError):
        pass
    raise InvalidInputError(
        f"Parameter {name!r} of --params must be a shape like [3], one of {', '.join(_WITH_SHAPE)}, or an object like "
        f'{{"interval": [0, 1]}} or {{"simplex": 3}}; got {json.dumps(given)}.'
    )


def _show(result: Result) -> None:
    assert result.plan is not None
    console.print(report.plan_table(result.plan))
    console.print(result.summary(), highlight=False, markup=False)
    for table in (report.cost_table(result), report.tempering_table(result), report.warnings_panel(result)):
        if table is not None:
            console.print(table)


def _write(out: Path, spec: str, result: Result) -> None:
    out.mkdir(parents=True, exist_ok=True)
    written = [result.save(out / "samples.nc")]
    written.append(report.save_figure(report.run_figure(result, None, spec), out / "figure.png"))
    if len(result.names) > 1:
        written.append(report.save_figure(report.pair_figure(result), out / "pairs.png"))
    summary = {
        "version": __version__,
        "target": spec,
        "n_samples": len(result.positions),
        "total_evaluations": result.total_evaluations,
        **{k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in result.attributes().items()},
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    console.print(f"Wrote {', '.join(map(str, [*written, out / 'summary.json']))}.")
