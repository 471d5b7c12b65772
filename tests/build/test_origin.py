"""Foreign code is known by name and version, the user's is read."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.made import made
from tilewise import TraceError, code_version
from tilewise.build.origin import foreign, version_of


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install a package as pip does; call it with a constant to install it anew."""
    folder = tmp_path / "site-packages"
    monkeypatch.syspath_prepend(str(folder))

    def install(constant: int, version: str = "1.0") -> Any:
        record = folder / "installed_under_test-1.0.dist-info"
        record.mkdir(parents=True, exist_ok=True)
        text = (
            f"Metadata-Version: 2.1\nName: installed-under-test\nVersion: {version}\n"
        )
        (record / "METADATA").write_text(text)
        package = folder / "installed_under_test"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text("")
        code = f"def helper(x):\n    return x + {constant}\n"
        (package / "helpers.py").write_text(code + "# " + "pad" * constant)
        user = "from .helpers import helper\ndef f(x):\n    return helper(x)\n"
        (package / "user.py").write_text(user)
        for name in [name for name in sys.modules if "installed_under_test" in name]:
            del sys.modules[name]
        importlib.invalidate_caches()
        version_of.cache_clear()
        return importlib.import_module("installed_under_test.user")

    yield install
    version_of.cache_clear()


def test_own_package_is_read_where_it_is_installed(installed: Any):
    """A kernel's own package is read, also when pip has installed it."""
    assert code_version(installed(1).f) != code_version(installed(2).f)


def test_other_packages_count_by_version(installed: Any):
    """The user's use of an installed package changes with its release only."""
    source = "def f(x):\n    return helper(x)\n"
    one = code_version(made(source, helper=installed(1).helper))
    same = code_version(made(source, helper=installed(2).helper))
    other = code_version(made(source, helper=installed(1, "2.0").helper))

    assert (True, False) == (one == same, one == other)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("numpy.linalg", "numpy.linalg"),
        ("functools", "functools"),
        ("tilewise.api.kernel", "tilewise.api.kernel"),
        ("tilewise.examples.histogram", None),
        ("__main__", None),
        ("", None),
        ("no_such_package", None),
        ("tests.made", None),
    ],
)
def test_what_is_foreign(module: str, expected: str | None):
    """Python's library and what provenance records are known by name alone."""
    assert expected == foreign(module, "mine")


def test_module_imported_whole_inside_a_function_is_refused():
    """What a function takes from such a module can't be told."""
    with pytest.raises(TraceError, match=r"cannot identify tests\.made: a module"):
        code_version(
            made("def f(x):\n    import tests.made\n    return tests.made.f\n")
        )


def test_name_that_an_import_lacks_is_unbound():
    """A name that is not there yet is told from one that is."""
    source = "def f(x):\n    from tests.expressions import {} as n\n    return n\n"
    one, two = made(source.format("SHAPE")), made(source.format("absent"))

    assert code_version(one) != code_version(two)
