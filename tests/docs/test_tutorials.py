import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent.parent / "docs/tools/tutorials.py"
SCRIPT = """# %% [markdown]
# # Title
#
# Text with $x^2$.

# %% [hidden]
import warnings

from cdsampler import SamplingWarning

# %%
print("three", 3)
warnings.warn("low-ess: few", SamplingWarning, stacklevel=1)

# %%
assert 1 + 1 == 2
"""


@pytest.fixture
def tutorials(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("tutorials_tool", TOOL)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "tutorials_tool", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    (tmp_path / "images").mkdir()
    (tmp_path / "one.py").write_text(SCRIPT)
    return module


def test_page_has_text_code_output_and_warnings(tutorials, tmp_path):
    tutorials.run("one", is_written=True)
    page = (tmp_path / "one.md").read_text()
    assert page.startswith("# Title\n\nText with $x^2$.\n\n```python\nprint(")
    assert "```text\nthree 3\nSamplingWarning: low-ess: few\n```" in page
    assert "import warnings" not in page
    assert not tutorials.is_stale("one")


def test_changed_code_is_stale_and_changed_text_keeps_outputs(tutorials, tmp_path):
    tutorials.run("one", is_written=True)
    (tmp_path / "one.py").write_text(SCRIPT.replace("# Title", "# Other"))
    assert tutorials.is_stale("one")
    tutorials.retext("one")
    assert not tutorials.is_stale("one")
    assert "three 3" in (tmp_path / "one.md").read_text()
    (tmp_path / "one.py").write_text(SCRIPT.replace("3)", "4)"))
    assert tutorials.is_stale("one")
    with pytest.raises(SystemExit, match="code has changed"):
        tutorials.retext("one")


def test_a_failed_assertion_fails(tutorials, tmp_path):
    (tmp_path / "one.py").write_text(SCRIPT.replace("== 2", "== 3"))
    with pytest.raises(AssertionError):
        tutorials.run("one", is_written=False)


def test_a_missing_package_is_named(tutorials, tmp_path):
    (tmp_path / "one.py").write_text("# requires: no_such_package, numpy\n" + SCRIPT)
    assert tutorials.missing_packages("one") == ["no_such_package"]
