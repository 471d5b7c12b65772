"""tilewise.emulate runs numba functions, CUDA C++ and PTX on the CPU, checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewise.api.emulate import emulate
from tilewise.errors import ArgumentError, EngineError

KERNELS = Path(__file__).parents[1] / "device" / "emulator" / "kernels"
SAXPY = """
extern "C" __global__ void saxpy(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""


@pytest.fixture
def cuda():
    """Return numba.cuda, which compiles without a GPU."""
    return pytest.importorskip("numba.cuda")


@pytest.fixture
def nvrtc():
    """Ask for the compiler of CUDA C++."""
    return pytest.importorskip("cuda.bindings.nvrtc")


def test_a_numba_kernel(cuda):
    """Arrays of any layout and numbers go in, results come back in place."""

    @cuda.jit
    def scale(x, out, factor):
        i, j = cuda.grid(2)
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = factor * x[i, j]

    x = np.arange(12.0).reshape(3, 4)
    out = np.zeros((4, 3)).T

    found = emulate(scale, 1, (8, 8), [x, out, 2.5])

    assert (2.5 * x).tolist() == out.tolist()
    assert found
    assert "scale, grid (1, 1, 1) block (8, 8, 1): 0 findings" == str(found)


def test_a_faulty_numba_kernel_names_its_python_line(cuda):
    """The report has the line of the Python source."""

    def copy(x, out):
        i = cuda.grid(1)
        if i <= out.size:
            out[i] = x[i]

    line = copy.__code__.co_firstlineno + 3
    found = emulate(copy, 1, 64, [np.ones(40), np.zeros(40)])

    assert not found
    assert {("copy", "out_of_bounds", f"test_emulate.py:{line}")} == {
        (r.kernel, r.kind, Path(r.source).name) for r in found.reports
    }
    assert "thread (40, 0, 0)" in str(found)


def test_cuda_source(nvrtc):
    """CUDA C++ takes arrays as pointers and numbers in their parameter's size."""
    x, y = np.arange(50, dtype=np.float32), np.ones(50, np.float32)

    found = emulate(SAXPY, 2, 32, [x, y, 2, 50])  # 2 becomes a float

    assert (2 * np.arange(50) + 1).tolist() == y.tolist()
    assert ([], ("lazy",)) == (found.reports, found.landings)


def test_a_ptx_file_with_asynchronous_copies_runs_twice():
    """Both landings are tried and the values are right."""
    random = np.random.default_rng(1)
    x = random.standard_normal((64, 16)).astype(np.float32)
    w = random.standard_normal((16, 64)).astype(np.float32)
    out = np.zeros((64, 64), np.float32)

    found = emulate(KERNELS / "tiled_sm90.ptx", 1, 256, [x, w, out, 64, 64, 16])

    np.testing.assert_allclose(out, x.astype(float) @ w, rtol=1e-5, atol=1e-5)
    assert ([], ("eager", "lazy")) == (found.reports, found.landings)


def test_one_of_several_entries_is_chosen():
    """Without a choice the error lists them."""
    text = """.version 8.7
    .target sm_90
    .address_size 64
    .entry one(.param .u64 p) { .reg .b64 %l; ld.param.u64 %l, [p];
    st.global.u32 [%l], 1; ret; }
    .entry two(.param .u64 p) { .reg .b64 %l; ld.param.u64 %l, [p];
    st.global.u32 [%l], 2; ret; }"""
    out = np.zeros(1, np.uint32)

    emulate(text, 1, 1, [out], entry="two")

    assert [2] == out.tolist()
    with pytest.raises(ArgumentError, match="one, two"):
        emulate(text, 1, 1, [out])


def test_races_between_blocks_are_an_option():
    """They are reported when asked for."""
    text = """.version 8.7
    .target sm_90
    .address_size 64
    .entry k(.param .u64 p) { .reg .b64 %l; .reg .b32 %r; ld.param.u64 %l, [p];
    mov.u32 %r, %ctaid.x; st.global.u32 [%l], %r; ret; }"""
    out = np.zeros(1, np.uint32)

    assert emulate(text, 2, 1, [out])
    assert not emulate(text, 2, 1, [out], global_races=True)


@pytest.mark.parametrize(
    ("kernel", "args", "options", "word"),
    [
        (3, [], {}, "no kernel"),
        ("text", [], {}, "neither"),
        ("missing.ptx", [], {}, "can't be read"),
        (SAXPY, [], {"arch": "9.0"}, "arch"),
        (KERNELS / "transpose_sm90.ptx", [], {}, "takes 4 arguments"),
        (
            KERNELS / "transpose_sm90.ptx",
            [np.zeros((4, 4)).T[1:], 1, 1, 1],
            {},
            "not C-contiguous",
        ),
        (
            KERNELS / "transpose_sm90.ptx",
            [np.zeros(1), np.zeros(1), 1.5, 1],
            {},
            "argument 2",
        ),
        (
            KERNELS / "transpose_sm90.ptx",
            [np.zeros(1), np.zeros(1), 2**40, 1],
            {},
            "no room",
        ),
        (
            KERNELS / "transpose_sm90.ptx",
            [np.zeros(1), np.zeros(1), np.int64(1), 1],
            {},
            "has 8 bytes, the parameter 4",
        ),
    ],
)
def test_wrong_arguments_are_named(kernel, args, options, word):
    """What is wrong is said before anything runs."""
    with pytest.raises((ArgumentError, EngineError), match=word):
        emulate(kernel, 1, 32, args, **options)


def test_compile_errors_carry_the_log(nvrtc):
    """The compiler's message names the user's line."""
    with pytest.raises(EngineError, match=r"kernel.cu\(2\)"):
        emulate("__global__ void k() {\n    nothing();\n}", 1, 1, [])


def test_numba_errors_carry_the_message(cuda):
    """What numba can't compile is said by numba."""

    def sort(x):
        x.sort_by_magic()

    with pytest.raises(EngineError, match="can't compile sort"):
        emulate(sort, 1, 1, [np.zeros(3)])


def test_unsupported_ptx_has_its_line():
    """The first instruction that is not there is named."""
    text = """.version 8.7
.target sm_90
.address_size 64
.entry k() {
 wgmma.fence.sync.aligned;
}"""
    with pytest.raises(EngineError, match="line 5: opcode 'wgmma'"):
        emulate(text, 1, 1, [])


def test_importing_loads_no_compiler_and_no_gpu_library():
    """Neither numba nor CuPy nor cuda comes with the modules of this feature."""
    code = (
        "import sys, tilewise.api.emulate, tilewise.api.check, tilewise.device.cuda;"
        "print([n for n in ('numba', 'cupy', 'cuda', 'llvmlite') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert "[]" == done.stdout.strip()
