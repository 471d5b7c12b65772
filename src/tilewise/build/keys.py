"""
The keys of artifacts: SHA-256 over labelled parts under a schema number.

A part is written as label, kind and content, each behind its length, so that no two
lists of parts give the same bytes. SHA-256 is said not to be for security, or a host
that bans weaker digests by policy would have to ask.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache

from tilewise.device.installed import installed_version
from tilewise.errors import EngineError
from tilewise.model.variant import Target

__all__ = ["SCHEMA", "artifact_key", "digest", "shipped_key", "toolchain_versions"]

SCHEMA = 1
"""The layout of artifact keys; a change of their parts is a new number."""


def digest(parts: Iterable[tuple[str, str | bytes]], schema: int) -> str:
    """
    Return the SHA-256 of labelled parts as 64 hexadecimal digits.

    The order counts, and a text is never equal to the bytes that encode it. Raises
    TypeError naming the label of a part that is neither str nor bytes.
    """
    hashed = hashlib.sha256(usedforsecurity=False)
    hashed.update(f"tilewise key schema {schema}\n".encode())
    for label, content in parts:
        hashed.update(framed(label, label))
        hashed.update(framed(label, content))
    return hashed.hexdigest()


def framed(label: str, content: object) -> bytes:
    """Return a content behind its kind and length in bytes."""
    if isinstance(content, str):
        data = content.encode("utf-8", "surrogatepass")
        return b"s%d:" % len(data) + data
    if isinstance(content, bytes):
        return b"b%d:" % len(content) + content
    raise TypeError(f"the key part {label!r} is of type {type(content).__name__}")


def artifact_key(
    parts: Iterable[tuple[str, str | bytes]], target: Target, toolchain: Iterable[str]
) -> str:
    """
    Return the key under which an artifact is kept.

    `parts` are the engine's own (source, signature, options, header closure);
    `toolchain` names the distributions whose exact versions count. Neither threads
    nor a fingerprint take part: what was built ahead of time elsewhere must hit.
    Raises EngineError when a tool is not installed.
    """
    about = (
        ("target.kind", target.kind),
        ("target.arch", target.arch),
        ("target.triple", target.triple),
        ("target.features", target.features),
        ("target.abi", target.abi),
    )
    tools = (
        (f"tool.{name}", version)
        for name, version in toolchain_versions(tuple(sorted(toolchain)))
    )
    named = ((f"part.{label}", content) for label, content in parts)
    return digest((*about, *tools, *named), SCHEMA)


def shipped_key(parts: Iterable[tuple[str, str | bytes]], target: Target) -> str:
    """
    Return the key under which an artifact stands in a file that is shipped.

    No toolchain takes part in it: the file serves where there is none, or another.
    """
    return artifact_key(parts, target, ())


@cache
def toolchain_versions(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """
    Return the (name, version) pairs of distributions, to the patch level.

    Read from their metadata, without importing them; 0.3 ms each, once a process.
    Raises EngineError naming one that is not installed.
    """
    return tuple((name, version_of(name)) for name in names)


def version_of(name: str) -> str:
    """Return a distribution's version; EngineError where it is not installed."""
    found = installed_version(name)
    if not found:
        raise EngineError(
            f"the distribution {name!r} is not installed, and a key needs its version"
        )
    return found
