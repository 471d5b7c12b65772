"""Users' own CUDA C++ kernels run on the emulated device, checked beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.forks import child_ended, needs_fork, quiet
from tilewise import RawKernel
from tilewise.api.raw_build import header_closure
from tilewise.device.chosen import chosen_device
from tilewise.errors import ArgumentError, EngineError

pytest.importorskip("cuda.bindings.nvrtc")
SOURCE = """
#include "factor.h"
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = FACTOR * a * x[i];
}
template <typename T> __global__ void fill(T* x, T value) { x[threadIdx.x] = value; }
__global__ void shared_sum(const int* x, int* out) {
    extern __shared__ int part[];
    part[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) for (int i = 0; i < blockDim.x; ++i) out[0] += part[i];
}
"""


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let CUDA work go to the emulated device."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a header."""
    (tmp_path / "factor.h").write_text("#define FACTOR 2\n")
    return tmp_path


@pytest.fixture
def scale(folder):
    """Return a kernel that is plain C."""
    return RawKernel(SOURCE, "scale", [f"-I{folder}"])


def on_device(values):
    """Return an emulated array with the values."""
    values = np.asarray(values)
    device = chosen_device()
    array = device.array(device.allocate(values.nbytes), values.shape, values.dtype)
    array.set(values)
    return array


def floats(count):
    """Return 0, 1, 2, ... on the device."""
    return on_device(np.arange(count, dtype=np.float32))


def test_a_kernel(scale):
    """Arrays go in as pointers, numbers in the size of their parameter."""
    x, y = floats(50), floats(50)
    scale[2, 32](x, y, 3, 50)

    assert (6.0 * np.arange(50)).tolist() == y.get().tolist()


def test_numpy_scalars(scale):
    """Scalars of the parameter's own type pass as they are."""
    x, y = floats(5), floats(5)
    scale[(1,), (32, 1, 1)](x, y, np.float32(0.5), np.int32(5))

    assert [0, 1, 2, 3, 4] == y.get().tolist()


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_a_name_expression(folder, dtype):
    """A template is named by its instance."""
    kind = {"float64": "double", "int32": "int"}[dtype]
    x = on_device(np.zeros(4, dtype))
    RawKernel(SOURCE, f"fill<{kind}>", [f"-I{folder}"])[1, 4](x, 7)

    assert [7] * 4 == x.get().tolist()


@pytest.mark.parametrize("name", ["nope", "fill", "fill<nope>"])
def test_a_name_that_the_source_does_not_have(folder, name):
    """It is told in one line, not as an error in a file that nobody wrote."""
    kernel = RawKernel(SOURCE, name, [f"-I{folder}"])
    with pytest.raises(ArgumentError, match=f"no kernel '{name}' in the .*: ") as told:
        kernel.compile("sm_90")
    assert 1 == len(str(told.value).splitlines())


def test_an_error_in_the_source_is_no_missing_name(folder):
    """The compiler's log shows the line, whatever the name."""
    kernel = RawKernel(f"{SOURCE}int x = y;", "nope", [f"-I{folder}"])
    with pytest.raises(EngineError, match='identifier "y" is undefined'):
        kernel.compile("sm_90")


def test_dynamic_shared_memory(folder):
    """The third of the launch is the dynamic shared bytes; C++ names are found."""
    x, out = on_device(np.arange(8, dtype=np.int32)), on_device(np.zeros(1, np.int32))
    RawKernel(SOURCE, "shared_sum", [f"-I{folder}"])[1, 8, 32](x, out)

    assert [28] == out.get().tolist()


def test_a_second_kernel_comes_from_the_store(scale, folder):
    """The same source is compiled once; the artifact says with what."""
    first = scale.compile()
    again = RawKernel(SOURCE, "scale", [f"-I{folder}"])
    second = again.compile()

    assert ("build", "store", first) == (scale.origin, again.origin, second)


def test_the_last_origin_is_told(scale, folder):
    """What another arch comes to is told, not what the first came to."""
    scale.compile("sm_80")
    again = RawKernel(SOURCE, "scale", [f"-I{folder}"])
    again.compile("sm_80")
    again.compile("sm_86")

    assert "build" == again.origin


def test_a_changed_header_is_compiled_anew(scale, folder):
    """Headers count by content, wherever they lie."""
    scale.compile()
    (folder / "factor.h").write_text("#define FACTOR 3\n")
    again = RawKernel(SOURCE, "scale", [f"-I{folder}"])
    y = floats(2)
    again[1, 2](floats(2), y, 1.0, 2)

    assert ("build", [0, 3]) == (again.origin, y.get().tolist())


def test_a_moved_header_is_the_same(scale, folder, tmp_path):
    """The folder's path takes no part in the key."""
    scale.compile()
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "factor.h").write_text("#define FACTOR 2\n")
    again = RawKernel(SOURCE, "scale", [f"-I{other}"])
    again.compile()

    assert "store" == again.origin


def test_headers_of_headers(tmp_path):
    """The closure follows includes, each file once."""
    (tmp_path / "a.h").write_text('#include "b.h"\n# include <b.h>\n')
    (tmp_path / "b.h").write_text('#include "a.h"\n#include "not_there.h"\n')

    found = header_closure('#include "a.h"\n', [tmp_path])
    assert ["a.h", "b.h"] == [name for name, _ in found]


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ((), "scale takes 4 arguments, 0 were given"),
        (("x", "y", 1.0), "scale takes 4 arguments, 3 were given"),
        ((np.zeros(3), "y", 1.0, 3), "argument 0 of scale is a host array"),
        (("x", "y", "x", 3), "argument 2 of scale is an array, the parameter a f32"),
        (("x", "y", 1.0, 2.5), "argument 3 of scale is 2.5, the parameter an integer"),
        (("x", "y", 1.0, 2**40), "argument 3 of scale: 1099511627776 does not fit 4"),
        (("x", "y", 1.0, np.int64(3)), "argument 3 of scale has 8 bytes, the param"),
        (("x", "y", np.int32(1), 3), "argument 2 of scale is a int32, the parameter"),
        (("x", "y", [1.0], 3), "argument 2 of scale is a list"),
        (("x", "y", 1.0, None), "argument 3 of scale is a NoneType"),
    ],
)
def test_wrong_arguments(scale, args, reason):
    """What does not fit is named before anything runs."""
    arrays = {"x": floats(3), "y": floats(3)}
    given = [arrays[a] if isinstance(a, str) else a for a in args]
    with pytest.raises(ArgumentError, match=reason):
        scale[1, 32](*given)


@pytest.mark.parametrize("launch", [(1,), (1, 32, 0, None, 5), (0, 32), (1, 2048)])
def test_wrong_launches(scale, launch):
    """A launch that CUDA has not is refused by name."""
    with pytest.raises(ArgumentError, match=r"grid|block"):
        scale[launch]


def test_a_compile_error_has_the_users_line(folder):
    """NVRTC's log names the line of the source."""
    broken = SOURCE.replace("blockIdx.x", "blockIdx.q", 1)
    with pytest.raises(EngineError, match=r"raw_kernel\.cu\(4\): error"):
        RawKernel(broken, "scale", [f"-I{folder}"]).compile()


def test_a_missing_header():
    """The header that is not found is named."""
    with pytest.raises(EngineError, match=r"factor\.h"):
        RawKernel(SOURCE, "scale").compile()


def test_an_unknown_flag(folder):
    """NVRTC's own words on an option that it does not know."""
    with pytest.raises(EngineError, match="no-such-flag"):
        RawKernel(SOURCE, "scale", [f"-I{folder}", "--no-such-flag"]).compile()


def test_an_unknown_architecture(scale):
    """An architecture outside the table is refused by name."""
    with pytest.raises(EngineError, match="'sm_70' is not known"):
        scale.compile("sm_70")


def test_options_in_one_string():
    """A string would be taken letter by letter, so it is refused."""
    with pytest.raises(ArgumentError, match="give a list"):
        RawKernel(SOURCE, "scale", "-DX=1")


def test_no_device(monkeypatch, folder):
    """Without a device a launch says so, and compiling asks for an arch."""
    monkeypatch.setenv("TILEWISE_DEVICE", "none")
    kernel = RawKernel(SOURCE, "scale", [f"-I{folder}"])
    with pytest.raises(EngineError, match="give arch="):
        kernel.compile()
    for argument in (1, np.zeros(3, np.float32)):
        with pytest.raises(EngineError, match=r"device here: tilewise\.emulate runs"):
            kernel[1, 1](argument, 2)


def test_an_artifact_for_another_arch(scale):
    """Any known architecture is compiled for, with its figures."""
    artifact = scale.compile("sm_120")

    assert ("sm_120", b"\x7fELF") == (artifact.arch, artifact.code[:4])
    assert dict(artifact.resources)["registers"] > 0


def test_a_stream_by_number(scale):
    """A stream is a number or any library's object."""
    y = floats(3)
    scale[1, 32, 0, chosen_device().stream()](floats(3), y, 1.0, 3)
    scale[1, 32, 0, 5](floats(3), y, 1.0, 3)

    assert [0, 2, 4] == y.get().tolist()
    with pytest.raises(ArgumentError, match="a str is no stream"):
        scale[1, 32, 0, "fast"](floats(3), y, 1.0, 3)


@needs_fork
@quiet
def test_a_forked_child_calls(scale):
    """A thread that loads in the parent does not keep its child from launching."""
    scale.compile("sm_90")
    x, y = floats(5), floats(5)

    assert 0 == child_ended(scale._lock, lambda: scale[1, 32](x, y, 3.0, 5))
