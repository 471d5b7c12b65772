"""check runs kernels out of a user's own files and collects the findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewise.api.check import check
from tilewise.errors import ArgumentError

KERNELS = Path(__file__).parents[1] / "device" / "emulator" / "kernels"
MODULE = """
import numpy as np
from numba import cuda

@cuda.jit
def double(x, out):
    i = cuda.grid(1)
    if i {} out.size:
        out[i] = 2 * x[i]

def case(n=10):
    x = np.ones(n, np.float32)
    return double, 1, 64, [x, np.zeros_like(x)]

def nothing():
    return 3
"""


@pytest.fixture
def module(tmp_path):
    """Return the function that writes a module with a right or wrong guard."""
    pytest.importorskip("numba.cuda")

    def write(guard, name):
        place = tmp_path / f"{name}.py"
        place.write_text(MODULE.format(guard))
        return place

    return write


def test_a_case_is_called_with_each_shape(module):
    """One run per shape, and the result is true when nothing was found."""
    found = check(f"{module('<', 'clean')}:case", shapes=[(10,), (33,)])

    assert found
    assert [(10,), (33,)] == [shape for shape, _ in found.runs]
    assert "[33] double" in str(found)
    assert str(found).endswith("no findings")


def test_findings_are_collected(module):
    """A wrong guard is found at the shape where it shows."""
    found = check(f"{module('<=', 'faulty')}:case", shapes=[(64,), (63,)])

    assert not found
    assert {"out_of_bounds"} == {report.kind for report in found.reports}
    assert [0, 2] == [len(run.reports) for _, run in found.runs]
    assert str(found).endswith("2 findings")


def test_a_kernel_is_launched_as_written(module):
    """Grid, block and arguments are texts over the sizes."""
    found = check(
        f"{module('<', 'plain')}:double",
        shapes=[(5, 7, 9)],
        grid="cdiv(n*k,32)",
        block="32",
        args=["float32[n*k]", "float32[n*k]=0"],
    )

    assert found
    assert (2, 1, 1) == found.runs[0][1].shape.grid


def test_ptx_and_cuda_files():
    """A file is a target of its own; 33x17x9 is the shape if none is given."""
    launch = {
        "grid": "cdiv(n,32),cdiv(m,32)",
        "block": "32,8",
        "args": ["float32[m,n]", "float32[n,m]=nan", "int32=m", "int32=n"],
    }

    found = check(f"{KERNELS / 'transpose_sm90.ptx'}:transpose", **launch)
    more = check(str(KERNELS / "transpose_sm75.ptx"), **launch)

    assert (33, 17, 9) == found.runs[0][0]
    assert found
    assert more


def test_a_launch_that_names_no_size_has_no_shape():
    """What is printed then speaks of no sizes, which nobody gave."""
    args = ["float32[1024]", "float32[1024]", "int32=32", "int32=32"]
    target = f"{KERNELS / 'transpose_sm90.ptx'}:transpose"

    found = check(target, grid="1", block="32,8", args=args)

    assert [()] == [shape for shape, _ in found.runs]
    assert str(found).startswith("transpose, grid (1, 1, 1)")


def test_a_cuda_file_in_another_folder(tmp_path):
    """Headers beside it are found, and reports name it by its place."""
    (tmp_path / "past.h").write_text("#define PAST 1\n")
    file = tmp_path / "far.cu"
    file.write_text(
        '#include "past.h"\n'
        'extern "C" __global__ void far(float* x) { x[threadIdx.x + PAST] = 1; }\n'
    )

    (report,) = check(str(file), grid="1", block="4", args=["float32[4]"]).reports

    assert f"{file.as_posix()}:2" == report.source


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("no_such_module_here:k", "can't import"),
        ("missing.py:k", "no file"),
        ("tilewise.errors:k", "has no 'k'"),
        ("tilewise.errors:", "names no kernel"),
        (str(KERNELS / "transpose_sm90.ptx"), "grid, block and args"),
    ],
)
def test_what_is_not_there_is_named(name, word):
    """Modules, names and launches that are missing are errors."""
    with pytest.raises(ArgumentError, match=word):
        check(name)


def test_a_case_has_to_return_a_launch(module):
    """Another result is named."""
    with pytest.raises(ArgumentError, match="did not return"):
        check(f"{module('<', 'wrong')}:nothing")
