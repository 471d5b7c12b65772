"""Keys are equal for equal parts only."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata

import pytest

from tilewise.build import keys
from tilewise.build.keys import artifact_key, digest, toolchain_versions
from tilewise.errors import EngineError
from tilewise.model.variant import Target

TARGET = Target("cpu", "znver3", "x86_64-linux", "+avx2", "cpython-312-numpy2", 2)
PARTS = (("source", "x + 1"), ("options", "-O3"))
TOOLS = ("numpy", "llvmlite")


def key(**changes: object) -> str:
    """Return the key of some parts with fields of the target changed."""
    return artifact_key(PARTS, replace(TARGET, **changes), TOOLS)  # type: ignore[arg-type]


def test_digest_is_stable():
    """The digest of given parts is a constant of the format."""
    expected = "64d15d377b05cb8c7108dd81efd65e32b58213f2f452cb617616971466221a00"

    assert expected == digest((("a", "1"), ("b", b"2")), 1)


@pytest.mark.parametrize(
    "other",
    [
        (("a", "b"), ("c", "e")),
        (("ab", ""), ("c", "d")),
        (("a", "bc"), ("", "d")),
        (("a", "b"),),
        (("c", "d"), ("a", "b")),
        (("a", b"b"), ("c", "d")),
        (("a", "bs1:cs1:d"),),
    ],
)
def test_other_parts_have_another_digest(other: tuple[tuple[str, str | bytes], ...]):
    """No two lists of parts run together into the same bytes."""
    assert digest((("a", "b"), ("c", "d")), 1) != digest(other, 1)


def test_another_schema_is_another_digest():
    """The schema's number is part of the digest."""
    assert digest(PARTS, 1) != digest(PARTS, 2)


def test_part_of_another_type_is_refused():
    """What is neither text nor bytes has no certain form, and is named."""
    with pytest.raises(TypeError, match="key part 'k' is of type int"):
        digest((("k", 7),), 1)  # type: ignore[arg-type]


def test_lone_surrogates_have_a_digest():
    """A text that UTF-8 can't hold, as from a file name, is no crash."""
    assert digest((("name", "\udcff"),), 1) != digest((("name", "?"),), 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"arch": "znver4"},
        {"triple": "aarch64-linux"},
        {"features": "+avx2,+avx512f"},
        {"abi": "cpython-313-numpy2"},
        {"kind": "cuda"},
    ],
)
def test_target_counts(changes: dict[str, str]):
    """Code for another target has another key."""
    assert key() != key(**changes)


def test_arch_suffix_counts():
    """The architecture sm_90a is not sm_90."""
    assert key(arch="sm_90") != key(arch="sm_90a")


def test_threads_do_not_count():
    """What one machine built hits on another with other threads."""
    assert key() == key(units=64)


def test_order_of_tools_does_not_count():
    """The toolchain is a set."""
    swapped = artifact_key(PARTS, TARGET, reversed(TOOLS))

    assert swapped == key()


def test_patch_level_of_a_tool_counts(monkeypatch: pytest.MonkeyPatch):
    """A toolchain's patch release is another toolchain."""
    before = key()
    versions = tuple((name, f"{metadata.version(name)}.1") for name in sorted(TOOLS))
    monkeypatch.setattr(keys, "toolchain_versions", lambda names: versions)

    assert before != key()


def test_versions_are_exact():
    """A tool's version is its distribution's, to the last number."""
    assert (("numpy", metadata.version("numpy")),) == toolchain_versions(("numpy",))


def test_missing_tool_is_refused_by_name():
    """A key that lacks a tool's version is refused, not made without it."""
    with pytest.raises(EngineError, match="'no-such-tool' is not installed"):
        artifact_key(PARTS, TARGET, ("no-such-tool",))


def test_part_is_not_taken_for_a_field_of_the_target():
    """An engine's part named as a field of the target is still another key."""
    parts = (*PARTS, ("target.arch", TARGET.arch))

    assert key() != artifact_key(parts, TARGET, TOOLS)
