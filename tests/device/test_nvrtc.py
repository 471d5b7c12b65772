"""CUDA C++ becomes CUBIN and PTX here, with no GPU and no driver."""

from __future__ import annotations

import pytest

from tilewise.device.elf import read_cubin
from tilewise.device.nvrtc import compiled_both, compiled_cubin, compiled_ptx
from tilewise.errors import EngineError

pytest.importorskip("cuda.core")
SOURCE = """
template <typename T> __global__ void scale(T* x) { x[threadIdx.x] *= 2; }
#ifdef PLAIN
extern "C" __global__ void plain(float* x) { x[0] = PLAIN; }
#endif
"""


def test_a_name_expression():
    """A template's kernel is there under its mangled name."""
    image = compiled_cubin(SOURCE, "sm_90", names=["scale<double>"])

    name = image.names["scale<double>"]
    assert (90, [name]) == (
        read_cubin(image.code).arch,
        [entry.name for entry in read_cubin(image.code).entries],
    )


def test_a_definition():
    """A macro is defined for both compilations."""
    image = compiled_cubin(SOURCE, "sm_80", defines=["PLAIN=3"])
    ptx = compiled_ptx(SOURCE, "sm_80", defines=["PLAIN=3"])

    assert read_cubin(image.code).entry("plain")
    assert b".entry plain" in ptx


def test_the_same_names_in_both():
    """CUBIN and PTX of a template have the same entry."""
    names = ["scale<float>"]
    image = compiled_cubin(SOURCE, "sm_90", names=names)

    ptx = compiled_ptx(SOURCE, "sm_90", names=names)
    assert f".entry {image.names['scale<float>']}(".encode() in ptx


@pytest.mark.parametrize("compile_", [compiled_cubin, compiled_ptx])
def test_a_compile_error_names_the_line(compile_):
    """The log has the user's file and line."""
    with pytest.raises(EngineError, match=r"mine\.cu\(2\): error"):
        compile_("__global__ void k() {\n  nothing();\n}", "sm_90", name="mine.cu")


@pytest.mark.parametrize("compile_", [compiled_cubin, compiled_ptx])
def test_an_unknown_architecture(compile_):
    """An architecture that NVRTC does not know is an error, not a hang."""
    with pytest.raises(EngineError, match="does not compile for sm_70"):
        compile_(SOURCE, "sm_70")


@pytest.mark.parametrize("compile_", [compiled_cubin, compiled_ptx])
def test_a_missing_header(compile_):
    """The missing file is named."""
    with pytest.raises(EngineError, match=r"no_such_header\.h"):
        compile_('#include "no_such_header.h"\n', "sm_90")


def test_included_files(tmp_path):
    """Headers are found in the folders given."""
    (tmp_path / "mine.h").write_text("#define TWO 2\n")
    source = '#include "mine.h"\nextern "C" __global__ void k(int* x) { *x = TWO; }'

    image = compiled_cubin(source, "sm_90", includes=[str(tmp_path)])
    assert read_cubin(image.code).entry("k")


def test_an_empty_log_overwrites_nothing():
    """NVRTC writes into memory of its own, not into Python's one-byte constant."""
    compiled_both('extern "C" __global__ void k() {}', "sm_90", (), (), "k.cu")

    assert [32, 33] == list(b" !"[:1]) + list(b" !"[1:])
