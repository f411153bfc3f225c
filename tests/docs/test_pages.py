import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_every_warning_is_explained():
    sources = (ROOT / "src/cdsampler").rglob("*.py")
    codes = set()
    for source in sources:
        text = source.read_text("utf-8")
        if "RunWarning(" in text:
            codes |= set(re.findall(r'(?:RunWarning\(\s*|^\s+)"([a-z]+(?:-[a-z]+)*)",', text, re.MULTILINE))
    page = (ROOT / "docs/diagnostics.md").read_text("utf-8")
    assert {"few-restarts", "new-modes", "nan", "partial"} <= codes
    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []
