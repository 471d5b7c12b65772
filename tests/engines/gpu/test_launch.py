"""Runs take arrays of the host and of devices, and load once for each device."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.engines.gpu.cases import ENGINES, Case, arguments, function_of, problem_at
from tests.forks import child_ended, needs_fork, quiet
from tilewise.device.arch import cuda_target
from tilewise.device.chosen import chosen_device
from tilewise.device.emulator.device import EmulatedDevice
from tilewise.device.staging import Staging
from tilewise.engines.gpu.launch import Plan
from tilewise.errors import EngineError

pytest.importorskip("cuda.core")
CASE = Case("cuda_cpp/naive", "bias", "P F", "primes", "exact", "float32", "lazy")
FUNCTION = function_of("bias", False)


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let CUDA work go to the emulated device."""
    monkeypatch.setenv("TILEWISE_DEVICE", "emulated")


@pytest.fixture(scope="module")
def artifact():
    """Return the compiled kernel."""
    problem = problem_at(FUNCTION, CASE)
    return ENGINES["cuda_cpp"].build(CASE.variant, problem, cuda_target("sm_90"))


@pytest.fixture
def run(artifact):
    """Return the loaded kernel."""
    return ENGINES["cuda_cpp"].load(artifact, CASE.variant, problem_at(FUNCTION, CASE))


def on(device, host, order="C"):
    """Return an emulated array with an array's values, in C or in F order."""
    packed = np.ascontiguousarray(host.T if order == "F" else host)
    memory = device.array(device.allocate(packed.nbytes), packed.shape, packed.dtype)
    memory.set(packed)
    return memory.T if order == "F" else memory


def arrays_on(device):
    """Return the case's arrays on a device."""
    orders = zip(arguments(CASE)[:5], "CFCCC", strict=True)
    return [on(device, array, order) for array, order in orders]


class Foreign:
    """An array of another library, which has the interface alone."""

    def __init__(self, array):
        self.kept = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def expected():
    """Return NumPy's result."""
    return FUNCTION(*arguments(CASE))


def test_host_arrays(run):
    """Host arrays are copied in, the result out, into any layout."""
    out = np.zeros(expected().shape[::-1], np.float32).T
    found = run(*arguments(CASE), out)

    assert found is out
    assert expected().tolist() == out.tolist()


@pytest.mark.parametrize("wrap", [lambda a: a, Foreign], ids=["emulated", "foreign"])
def test_device_arrays(run, wrap):
    """Device arrays are used in place, whatever library they are of."""
    device = chosen_device()
    out = on(device, np.zeros_like(expected()))
    found = run(*map(wrap, arrays_on(device)), None, 0.75, wrap(out))

    assert expected().tolist() == out.get().tolist()
    assert type(found) is type(wrap(out))


def cupy_like(array):
    """Return an array with the attributes of CuPy's."""
    made = type("ndarray", (), {"__module__": "cupy"})()
    made.data, made.dtype = SimpleNamespace(ptr=array.address), array.dtype
    made.shape, made.strides = array.shape, array.strides
    made.__cuda_array_interface__ = array.__cuda_array_interface__
    return made


@pytest.mark.parametrize("other", [cupy_like, Foreign], ids=["cupy", "mixed"])
def test_arrays_like_cupys(run, other, monkeypatch):
    """They are located by their attributes, also beside another library's."""
    stream = SimpleNamespace(ptr=0)
    cuda = SimpleNamespace(get_current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    device = chosen_device()
    out = on(device, np.zeros_like(expected()))
    first, *rest = arrays_on(device)
    run(cupy_like(first), *map(other, rest), None, 0.75, cupy_like(out))

    assert expected().tolist() == out.get().tolist()


def test_another_device(run):
    """Arrays of a second device run there; the artifact is loaded there once."""
    device = EmulatedDevice((9, 0), memory_bytes=1 << 20)
    out = on(device, np.zeros_like(expected()))
    run(*arrays_on(device), None, 0.75, out)

    assert expected().tolist() == out.get().tolist()
    assert {device, chosen_device()} == set(run.loaded)


@pytest.mark.parametrize("shape", [(0, 53), (37, 0), (0, 0)])
def test_an_empty_result(run, shape):
    """Nothing is launched for a result without elements."""
    m, n = shape
    arrays = [np.zeros(s, np.float32) for s in ((m, 41), (n, 41), n, (m, 1), (m, n))]
    out = np.zeros(shape, np.float32)

    assert out is run(arrays[0], arrays[1].T, *arrays[2:], None, 1.0, out)


def test_no_device(artifact, monkeypatch):
    """Without a device an artifact can't be loaded, and the error says so."""
    monkeypatch.setenv("TILEWISE_DEVICE", "none")
    with pytest.raises(EngineError, match="there is no CUDA device here"):
        ENGINES["cuda_cpp"].load(artifact, CASE.variant, problem_at(FUNCTION, CASE))


@pytest.mark.parametrize("damage", [b"", b"no PTX at all", b"\xff\xfe"])
def test_a_damaged_artifact(artifact, damage):
    """What does not load is an EngineError, for which the store evicts it."""
    with pytest.raises(EngineError):
        ENGINES["cuda_cpp"].load(
            replace(artifact, text=damage), CASE.variant, problem_at(FUNCTION, CASE)
        )


def test_a_foreign_entry(artifact):
    """An artifact without its entry names those that it has."""
    text = artifact.text.replace(b"tilewise_kernel", b"another_kernel")
    with pytest.raises(EngineError, match="another_kernel"):
        ENGINES["cuda_cpp"].load(
            replace(artifact, text=text), CASE.variant, problem_at(FUNCTION, CASE)
        )


@pytest.mark.parametrize(
    ("sizes", "blocks"), [((1, 1), 1), ((64, 32), 1), ((65, 33), 4), ((64, 320), 10)]
)
def test_the_grid(sizes, blocks):
    """One block for each tile, along one axis."""
    plan = Plan(64, 32, (16, 16, 1), "k", "k", 128)

    assert (blocks, 1, 1) == plan.shape(*sizes).grid
    assert (256, 128) == (plan.shape(*sizes).threads, plan.shape(*sizes).shared_bytes)


def test_inputs_stay_as_they_are(run):
    """No argument is written."""
    args = arguments(CASE)
    run(*args, np.zeros(expected().shape, np.float32))

    same = [np.array_equal(a, b) for a, b in zip(args, arguments(CASE), strict=True)]
    assert all(same)


def bound(artifact, **changed):
    """Return the case's problem with w and b as constants, and its loaded run."""
    problem = replace(problem_at(FUNCTION, CASE), constants=(1, 2), **changed)
    return ENGINES["cuda_cpp"].load(artifact, CASE.variant, problem)


def test_constants_stay_on_the_device(artifact, monkeypatch):
    """A bound run copies x and the other open arrays in, and sees no later writes."""
    args, wanted = arguments(CASE), expected()
    run = bound(artifact).bind(args)
    copied = []
    real = Staging.copied_in
    monkeypatch.setattr(
        Staging,
        "copied_in",
        lambda self, host, order: copied.append(host) or real(self, host, order),
    )
    x, out = args[0].copy(), np.zeros_like(wanted)
    args[1][...], args[2][...] = 0, 0
    found = [run(one, *args[1:], out).tolist() for one in (x, -x, x)]

    other = FUNCTION(-x, *arguments(CASE)[1:]).tolist()
    assert [wanted.tolist(), other, wanted.tolist()] == found
    assert 9 == len(copied)  # x and two operands, three times


def test_a_bound_run_of_device_arrays(artifact):
    """There the constants are already: any call's own arrays are used."""
    device = chosen_device()
    run = bound(artifact, residency="device")
    arrays = arrays_on(device)
    out = on(device, np.zeros_like(expected()))
    run.bind([*arrays, None, 0.75])(*arrays, None, 0.75, out)

    assert expected().tolist() == out.get().tolist()


def test_launches_are_told_apart(run):
    """Sizes, strides and alignment each have a launch of their own, used again."""
    device = chosen_device()
    out = on(device, np.zeros_like(expected()))
    for _ in range(2):
        for step in (1, 2):
            wide = on(device, np.repeat(arguments(CASE)[4], step, axis=1))[:, ::step]
            run(*arrays_on(device)[:4], wide, None, 0.75, out)
            assert expected().tolist() == out.get().tolist()

    assert 2 == len(run.loaded[device].launches)


def test_the_device_of_a_problem(artifact, monkeypatch):
    """On a machine with several GPUs it is loaded where its arrays live."""
    first, other = EmulatedDevice((8, 0)), EmulatedDevice((9, 0))
    first._properties = replace(first.properties, emulated=False)
    monkeypatch.setattr("tilewise.device.views.chosen_device", lambda: first)
    monkeypatch.setattr("tilewise.device.views.gpu", {1: other}.get)
    problem = replace(problem_at(FUNCTION, CASE), residency="device", device=1)
    run = ENGINES["cuda_cpp"].load(artifact, CASE.variant, problem)

    assert [other] == list(run.loaded)


@needs_fork
@quiet
def test_a_forked_child_loads(run):
    """A thread that loads in the parent does not keep its child from loading."""
    device = EmulatedDevice((9, 0), memory_bytes=1 << 20)

    assert 0 == child_ended(run.lock, lambda: run.load(device))
