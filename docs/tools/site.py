"""A Sphinx extension: links as on GitHub, maths without scripts, and an API reference that misses nothing.

- Links between files of the repository, which GitHub follows as they are, lead to the pages made from those files.
- TeX becomes MathML, which browsers show by themselves.
- Everything public has to be in the API reference.
"""

import ast
import inspect
import posixpath
import re
from pathlib import Path
from typing import Any

import equinox
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.typing import stringify_annotation

LOG = logging.getLogger(__name__)
ROOT = Path(__file__).parent.parent.parent
# Files of the root that are pages, too.
FROM_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "VISION.md": "vision.md",
}
# Not in the navigation until somebody has written them.
PENDING = ("models", "scale")
PACKAGES = ("cdsampler", "cdsampler.adapters", "cdsampler.benchmark", "cdsampler.metrics", "cdsampler.targets")

LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()([^)\s]+)(\))")
CODE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx."""
    app.connect("source-read", lambda app, name, content: _mend_page(name, content))
    app.connect("include-read", lambda app, path, parent, content: _mend_included(path, parent, content))
    app.connect("env-check-consistency", lambda app, env: _check_reference())
    app.connect("doctree-read", lambda app, doctree: _tidy_types(doctree))
    app.connect("autodoc-process-signature", _take_types_of_init)
    app.add_html_math_renderer("mathml", (_visit_inline_maths, None), (_visit_block_maths, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _mend_page(name: str, content: list[str]) -> None:
    content[0] = _with_links(content[0], f"docs/{name}.md", f"{name}.md")
    for page in PENDING:
        if not (ROOT / f"docs/{page}.md").exists():
            content[0] = content[0].replace(f"\n{page}\n", "\n")


def _mend_included(path: Path, parent: str, content: list[str]) -> None:
    source = (ROOT / "docs" / path).resolve().relative_to(ROOT).as_posix()
    content[0] = _with_links(content[0], source, f"{parent}.md")


def _with_links(text: str, source: str, page: str) -> str:
    """Turn a file's links to files of the repository into links to pages; code stays as it is."""
    code = [match.span() for match in CODE.finditer(text)]

    def mend(match: re.Match[str]) -> str:
        if any(start < match.start() < end for start, end in code):
            return match[0]
        return match[1] + _link(match[2], source, page) + match[3]

    return LINK.sub(mend, text)


def _link(target: str, source: str, page: str) -> str:
    path, hash_, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return target
    linked = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if linked in FROM_ROOT:
        linked = FROM_ROOT[linked]
    elif linked.startswith("docs/"):
        linked = linked.removeprefix("docs/")
    else:
        LOG.warning("%s links to %s, which is not in the site", source, target)
        return target
    return posixpath.relpath(linked, posixpath.dirname(page) or ".") + hash_ + anchor


def _check_reference() -> None:
    """Warn of what the packages import under its own name ('from x import y as y') and no page describes."""
    pages = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs/reference").glob("*.rst"))
    described = set(re.findall(r"^\.\. (?:auto|py:)\w+:: (\S+)", pages, re.MULTILINE))
    for package in PACKAGES:
        path = ROOT / "src" / package.replace(".", "/") / "__init__.py"
        for node in ast.parse(path.read_text("utf-8")).body if path.exists() else ():
            for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                name = f"{package}.{alias.name}"
                if alias.asname == alias.name and name not in described:
                    LOG.warning("%s is public: add it to a page of docs/reference", name)


def _tidy_types(doctree: nodes.document) -> None:
    """Show the last parts of classes' names, and leave words alone ("ndarray, shape (dim,)"), which are no links."""
    for reference in list(doctree.findall(pending_xref)):
        if reference.get("refdomain") != "py" or reference.get("reftype") != "class":
            continue
        for text in list(reference.findall(nodes.Text)):
            text.parent.replace(text, nodes.Text(re.sub(r"^([a-z_]\w*\.)+(?=\w+$)", "", text.astext())))
        if not reference.get("reftarget", "").split(".")[-1][:1].isupper():
            reference.replace_self(reference.children)


def _take_types_of_init(app: Sphinx, what: str, name: str, obj: Any, options: Any, args: Any, returns: Any) -> None:
    """Take parameters' types from __init__: Sphinx prefers those of the fields of the same name."""
    if what == "class" and issubclass(obj, equinox.Module):
        annotations = app.env.current_document.autodoc_annotations.setdefault(name, {})
        for parameter in inspect.signature(obj.__init__).parameters.values():
            if parameter.annotation is not parameter.empty:
                annotations[parameter.name] = stringify_annotation(parameter.annotation, "smart")


def _visit_inline_maths(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def _visit_block_maths(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(convert(node.astext(), display="block"))
    raise nodes.SkipNode
