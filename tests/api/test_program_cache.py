"""cuda.core compiles once and finds its programs in tilewise's store again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tilewise import ProgramCache
from tilewise.api import program_cache
from tilewise.errors import EngineError, StoreWarning

core = pytest.importorskip("cuda.core")
SOURCE = 'extern "C" __global__ void k(int* x) { *x = 1; }'


def compiled(cache):
    """Compile with a cache and return the bytes alone; see facts on `repr`."""
    program = core.Program(SOURCE, "c++", core.ProgramOptions(arch="sm_90"))
    return bytes(program.compile("cubin", cache=cache).code)


def test_cuda_core_uses_it():
    """A second compilation reads what the first one kept."""
    with ProgramCache() as cache:
        first = compiled(cache)
        assert 1 == len(cache)
        assert first == compiled(cache)
        assert 1 == len(cache)


def test_it_is_a_resource():
    """cuda.core's own type check passes."""
    from cuda.core.utils import ProgramCacheResource

    assert isinstance(ProgramCache(), ProgramCacheResource)


def test_a_mapping():
    """Text and bytes name the same entry; get, update, del and clear work."""
    cache = ProgramCache()
    cache["k"] = b"one"
    cache.update({b"l": bytearray(b"two")})
    cache.update([("m", memoryview(b"three"))])

    assert (b"one", b"two", b"three") == (cache[b"k"], cache["l"], cache.get("m"))
    del cache["k"]
    assert (None, b"none", 2) == (cache.get("k"), cache.get("k", b"none"), len(cache))
    cache.clear()
    assert 0 == len(cache)


def test_a_missing_key():
    """Reading and deleting what is not there is a KeyError."""
    cache = ProgramCache()
    with pytest.raises(KeyError):
        cache["k"]
    with pytest.raises(KeyError):
        del cache["k"]


def test_a_number_is_no_program():
    """bytes(5) would be five zeros: neither a key nor a program is made of it."""
    with ProgramCache() as cache:
        with pytest.raises(TypeError):
            cache[5] = b"code"
        with pytest.raises(TypeError):
            cache[b"key"] = 5
        assert 0 == len(cache)


def test_an_empty_program():
    """What a compiler left empty is refused, not kept."""
    cache = ProgramCache()
    with pytest.raises(EngineError, match="0 bytes"):
        cache["k"] = b""
    assert 0 == len(cache)


def test_another_patch_level(monkeypatch):
    """The exact version of NVRTC is part of the namespace."""
    ProgramCache()["k"] = b"old"
    versions = {"nvidia-cuda-nvrtc": "13.5.38", "nvidia-nvjitlink": "13.5.37"}
    monkeypatch.setattr(
        program_cache, "toolchain_versions", lambda names: tuple(versions.items())
    )

    assert ProgramCache().get("k") is None


def test_a_damaged_program_is_rebuilt(tmp_path):
    """A flipped byte is a miss with one warning, and the compiler runs again."""
    cache = ProgramCache()
    first = compiled(cache)
    damage(tmp_path / "store")
    with pytest.warns(StoreWarning):
        again = compiled(cache)

    assert first == again


def damage(root: Path) -> None:
    """Flip a byte in the middle of every stored value."""
    for path in root.rglob("*.val"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    for path in root.rglob("cache.db"):
        with sqlite3.connect(path) as database:
            rows = database.execute("select rowid, value from Cache").fetchall()
            for row, value in rows:
                if isinstance(value, bytes):
                    changed = bytearray(value)
                    changed[len(changed) // 2] ^= 1
                    database.execute(
                        "update Cache set value=? where rowid=?", (bytes(changed), row)
                    )


def test_a_file_of_an_object_code(tmp_path):
    """A program that is a path is read when it is kept."""
    path = tmp_path / "k.cubin"
    path.write_bytes(b"code")
    cache = ProgramCache()
    cache["k"] = type("ObjectCode", (), {"code": str(path)})()

    assert b"code" == cache["k"]
