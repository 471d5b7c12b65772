"""CUDA C++ becomes CUBIN and PTX here, with no GPU and no driver."""

from __future__ import annotations

import pytest

from tilewise.device.elf import read_cubin
from tilewise.device.nvrtc import Session, compiled_both
from tilewise.errors import EngineError

pytest.importorskip("cuda.bindings")
SOURCE = """
template <typename T> __global__ void scale(T* x) { x[threadIdx.x] *= 2; }
#ifdef PLAIN
extern "C" __global__ void plain(float* x) { x[0] = PLAIN; }
#endif
"""


FLAGS = ("-std=c++17",)


def test_a_name_expression():
    """A template's kernel is there under its mangled name, in both forms."""
    image, ptx = compiled_both(SOURCE, "sm_90", FLAGS, ["scale<double>"])

    name, cubin = image.names["scale<double>"], read_cubin(image.code)
    assert (90, [name]) == (cubin.arch, [entry.name for entry in cubin.entries])
    assert f".entry {name}(".encode() in ptx


def test_a_definition():
    """A macro is defined for both forms."""
    image, ptx = compiled_both(SOURCE, "sm_80", (*FLAGS, "-DPLAIN=3"))

    assert read_cubin(image.code).entry("plain")
    assert b".entry plain" in ptx


def test_the_ptx_is_that_of_the_virtual_architecture():
    """What is compiled for a real architecture comes from the very same PTX."""
    flags = (*FLAGS, "-DPLAIN=3")
    with Session(SOURCE, "kernel.cu", ()) as session:
        session.compile("compute_90", flags)
        expected = session.result("PTX")

    assert expected == compiled_both(SOURCE, "sm_90", flags)[1]


def test_a_compile_error_names_the_line():
    """The log has the user's file and line."""
    source = "__global__ void k() {\n  nothing();\n}"
    with pytest.raises(EngineError, match=r"mine\.cu\(2\): error"):
        compiled_both(source, "sm_90", FLAGS, name="mine.cu")


def test_an_unknown_architecture():
    """An architecture that NVRTC does not know is an error, not a hang."""
    with pytest.raises(EngineError, match="does not compile for sm_70"):
        compiled_both(SOURCE, "sm_70", FLAGS)


def test_a_missing_header():
    """The missing file is named."""
    with pytest.raises(EngineError, match=r"no_such_header\.h"):
        compiled_both('#include "no_such_header.h"\n', "sm_90", FLAGS)


def test_included_files(tmp_path):
    """Headers are found in the folders given."""
    (tmp_path / "mine.h").write_text("#define TWO 2\n")
    source = '#include "mine.h"\nextern "C" __global__ void k(int* x) { *x = TWO; }'

    image, _ = compiled_both(source, "sm_90", (*FLAGS, f"-I{tmp_path}"))
    assert read_cubin(image.code).entry("k")


def test_an_empty_log_overwrites_nothing():
    """NVRTC writes into memory of its own, not into Python's one-byte constant."""
    compiled_both('extern "C" __global__ void k() {}', "sm_90", (), (), "k.cu")

    assert [32, 33] == list(b" !"[:1]) + list(b" !"[1:])
