import jaxtyping
import pytest


@pytest.fixture
def without_type_checks():
    """Reach the library's own checks with arguments that the run-time type checker would stop first."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)
