import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def fake():
    """The module of made-up stores."""
    spec = importlib.util.spec_from_file_location("fake_store", Path(__file__).parents[1] / "fronts" / "fake_store.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
