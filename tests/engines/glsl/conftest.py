"""All of these need an OpenGL context: Mesa's llvmpipe is one."""

from __future__ import annotations

import pytest

from tests.opengl import needs_opengl


@pytest.fixture(autouse=True)
def _opengl() -> None:
    """Skip by name where there is none, or fail where it is required."""
    needs_opengl()
