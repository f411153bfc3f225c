"""Run the tutorials; write their pages.

    python docs/tools/tutorials.py check [NAME …]   # short settings, writes nothing; fails where a tutorial does
    python docs/tools/tutorials.py write [NAME …]   # full settings, writes docs/tutorials/NAME.md and its pictures
    python docs/tools/tutorials.py text [NAME …]    # runs nothing; writes pages anew with the outputs that they have

A tutorial is a script in docs/tutorials with cells: `# %% [markdown]` begins text (in comments), `# %%` code, and
`# %% [hidden]` code that the page leaves out. What a code cell prints, warns of and plots comes below it on the page.
With CDSAMPLER_SHORT=1, which `check` sets, scripts take settings that are done sooner. Each runs in its own process.
A script whose line `# requires: a, b` names a package that isn't installed is skipped.
"""

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent.parent / "tutorials"
MARK = re.compile(r"^# %%(?: \[(markdown|hidden)\])?\n", re.MULTILINE)
OUTPUT = re.compile(r"```text\n.*?```\n\n|!\[[^\]]*\]\(images/[^)]*\)\n\n", re.DOTALL)


class Cell(NamedTuple):
    """A part of a script: its kind ("markdown", "hidden" or "code"), its text, and the line that it begins at."""

    kind: str
    text: str
    line: int


def cells_of(script: str) -> list[Cell]:
    """Split a script at its marks; what stands before the first is left out."""
    marks = list(MARK.finditer(script))
    ends = [mark.start() for mark in marks[1:]] + [len(script)]
    return [
        Cell(mark[1] or "code", script[mark.end() : end].strip("\n"), script.count("\n", 0, mark.end()))
        for mark, end in zip(marks, ends, strict=True)
    ]


def page_of(name: str, cells: list[Cell], outputs: dict[int, str]) -> str:
    """Return a tutorial's page, with the output of each code cell below it."""
    parts = []
    for index, cell in enumerate(cells):
        if cell.kind == "markdown":
            parts.append("\n".join(line.removeprefix("#").removeprefix(" ") for line in cell.text.splitlines()))
        elif cell.kind == "code":
            parts.append(f"```python\n{cell.text}\n```")
        if outputs.get(index):
            parts.append(outputs[index])
    parts.append(f"*The script: [{name}.py]({name}.py). `make tutorials-full` makes this page from it.*")
    return "\n\n".join(parts) + "\n"


def retext(name: str) -> None:
    """Write a page with its script's present text and the outputs that it has; the code must be the same."""
    page = FOLDER / f"{name}.md"
    cells = cells_of((FOLDER / f"{name}.py").read_text("utf-8"))
    blocks = re.findall(rf"```python\n(.*?)\n```\n\n((?:{OUTPUT.pattern})*)", page.read_text("utf-8"), re.DOTALL)
    code = [(index, cell) for index, cell in enumerate(cells) if cell.kind == "code"]
    if [cell.text for _, cell in code] != [block[0] for block in blocks]:
        raise SystemExit(f"{name}: its code has changed, run 'make tutorials-full TUTORIALS={name}'")
    outputs = {index: block[1].rstrip("\n") for (index, _), block in zip(code, blocks, strict=True)}
    page.write_text(page_of(name, cells, outputs), "utf-8")


def run(name: str, is_written: bool) -> None:
    """Run a tutorial in this process, and write its page if wanted."""
    import matplotlib

    matplotlib.use("Agg")
    path = FOLDER / f"{name}.py"
    cells = cells_of(path.read_text("utf-8"))
    space: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    outputs: dict[int, str] = {}
    n_pictures = 0
    for index, cell in enumerate(cells):
        if cell.kind == "markdown":
            continue
        printed, pictures = _execute(cell, path, space)
        parts = [f"```text\n{printed.rstrip()}\n```"] if printed.strip() else []
        for figure, caption in pictures:
            n_pictures += 1
            if is_written:
                figure.savefig(FOLDER / f"images/{name}-{n_pictures}.png", dpi=90)
            parts.append(f"![{caption}](images/{name}-{n_pictures}.png)")
        outputs[index] = "\n\n".join(parts)
    if is_written:
        (FOLDER / f"{name}.md").write_text(page_of(name, cells, outputs), "utf-8")


def _execute(cell: Cell, path: Path, space: dict[str, Any]) -> tuple[str, list[tuple[Any, str]]]:
    """Run a cell; return what it printed and the figures it made, each with its caption."""
    import matplotlib.pyplot as plt

    def show(message: Any, category: type[Warning], *rest: Any) -> None:
        if category.__name__ == "SamplingWarning":
            print(f"SamplingWarning: {message}")

    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show  # type: ignore[assignment]
            exec(compile("\n" * cell.line + cell.text, str(path), "exec"), space)
    finally:
        print(printed.getvalue(), end="")
    figures = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    return printed.getvalue(), [(figure, figure.get_label() or "Figure") for figure in figures]


def is_stale(name: str) -> bool:
    """Whether a page's text or code isn't its script's."""
    page = FOLDER / f"{name}.md"
    cells = cells_of((FOLDER / f"{name}.py").read_text("utf-8"))
    return not page.exists() or OUTPUT.sub("", page.read_text("utf-8")) != OUTPUT.sub("", page_of(name, cells, {}))


def missing_packages(name: str) -> list[str]:
    """Return the packages that a script requires and that aren't installed."""
    line = re.search(r"^# requires: (.*)$", (FOLDER / f"{name}.py").read_text("utf-8"), re.MULTILINE)
    return [package for package in re.split(r",\s*", line[1]) if not importlib.util.find_spec(package)] if line else []


def main(arguments: list[str]) -> int:
    """Run the tutorials asked for, or all."""
    if arguments[:1] == ["_run"]:
        run(arguments[1], is_written=arguments[2] == "write")
        return 0
    if arguments[:1] not in (["check"], ["write"], ["text"]):
        print(__doc__)
        return 2
    names = arguments[1:] or sorted(path.stem for path in FOLDER.glob("*.py"))
    if arguments[0] == "text":
        for name in names:
            retext(name)
        return 0
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name in names:
        counts[_in_process(name, arguments[0])] += 1
    print("tutorials: " + ", ".join(f"{count} {what}" for what, count in counts.items() if count or what != "skipped"))
    return 1 if counts["failed"] or not counts["passed"] else 0


def _in_process(name: str, command: str) -> str:
    if missing := missing_packages(name):
        print(f"{name}: skipped, {', '.join(missing)} isn't installed")
        return "skipped"
    begin = time.monotonic()
    environment = {
        **os.environ,
        "CDSAMPLER_SHORT": "1" if command == "check" else "",
        "JAX_PLATFORMS": "cpu",
        "PYTHONUNBUFFERED": "1",
    }
    done = subprocess.run(
        [sys.executable, __file__, "_run", name, command], env=environment, stdout=subprocess.PIPE, text=True
    )
    seconds = time.monotonic() - begin
    if done.returncode:
        print(done.stdout)
        print(f"{name}: FAILED after {seconds:.0f} s with status {done.returncode}")
        return "failed"
    if command == "check" and is_stale(name):
        print(f"{name}: runs, but {name}.md has other text or code: run 'make tutorials-full TUTORIALS={name}'")
        return "failed"
    print(f"{name}: passed in {seconds:.0f} s", flush=True)
    return "passed"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
