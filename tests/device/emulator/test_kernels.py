"""Whole kernels: right values, no reports on clean ones, planted faults found."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import emulator_faults

HERE = Path(__file__).parent
KERNELS = tuple(emulator_faults.KERNEL_NAMES)
ARCHES = [
    (path.stem.rpartition("_sm")[0], path.stem.rpartition("_sm")[2])
    for path in sorted((HERE / "kernels").glob("*.ptx"))
]
MATH = [arch for kernel, arch in ARCHES if kernel == "math"]
ARCHES = [pair for pair in ARCHES if pair[0] != "math"]
#: The other emulator knows no mma.
ANSWERED = [pair for pair in ARCHES if pair[0] != "mma"]


@pytest.mark.parametrize(("kernel", "arch"), ARCHES)
def test_clean_kernels_are_right_without_a_report(kernel, arch):
    """Every recorded kernel of every target, at shapes that its tiles don't divide."""
    text = emulator_faults.text_of(kernel, arch)

    found = emulator_faults.outcome(emulator_faults.Fault(kernel, "none", "", text))

    assert ([], "") == found


def _few(kernel):
    """Return two faults of each kind: all are run in the emulate session."""
    seen: dict[str, int] = {}
    for fault in emulator_faults.faults(kernel):
        seen[fault.kind] = seen.get(fault.kind, 0) + 1
        if seen[fault.kind] <= 2:
            yield fault


@pytest.mark.parametrize("kernel", KERNELS)
def test_planted_faults_are_found(kernel):
    """Each kind of fault gives the kinds of reports that belong to it."""
    missed = {
        fault.name: found
        for fault in _few(kernel)
        for found, _ in [emulator_faults.outcome(fault)]
        if not set(found) & emulator_faults.EXPECTED[fault.kind]
        and fault.kind != "none"
    }

    assert {} == missed


@pytest.mark.emulate
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_whole_matrix_is_found(kernel):
    """Every fault is found, and the record says so."""
    missed = [
        row
        for row in emulator_faults.matrix(kernel)
        if bool(row["found_by"]) == (row["fault"] == "none")
    ]

    assert [] == missed


@pytest.mark.parametrize(("kernel", "arch"), ANSWERED)
def test_values_equal_an_independent_emulator(run, kernel, arch):
    """Recorded answers of another interpreter of the same PTX, bit by bit."""
    with np.load(HERE / "answers.npz") as answers:
        inputs = [answers[name] for name in answers.files if f"{kernel}/input" in name]
        expected = answers[f"{kernel}/90"]
    text = emulator_faults.text_of(kernel, arch)
    if kernel == "tiled":  # all copies are whole here, and it knows no other
        text = re.sub(r"(cp\.async\.cg[^;]*, 16), %r\d+;", r"\1;", text)
    setting = emulator_faults.answered(kernel)
    kind = np.uint32 if setting.accumulates else np.float32
    out = np.zeros(setting.expected.shape, kind)

    found, reports = run(
        text, setting.grid, setting.block, [*inputs, out, *setting.scalars]
    )

    assert expected.tolist() == found[len(inputs)].tolist()
    assert [] == reports


SIMULATED = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from numba import cuda
from shared import shared
m, n, k = 9, 18, 7
random = np.random.default_rng(5)
x = random.standard_normal(m * k).astype(np.float32)
w = random.standard_normal(k * n).astype(np.float32)
out = np.zeros(m * n, np.float32)
cuda.jit(shared)[(2, 1), (16, 16)](x, w, out, m, n, k)
np.savez(sys.argv[2], x=x, w=w, out=out)
"""


def test_values_equal_numbas_simulator(run, tmp_path, monkeypatch):
    """The same Python function through numba's simulator gives the same bits."""
    pytest.importorskip("numba.cuda")
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    place = tmp_path / "simulated.npz"
    command = [sys.executable, "-c", SIMULATED, str(HERE / "kernels"), str(place)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    with np.load(place) as saved:
        simulated = dict(saved)
    sizes = [np.int64(9), np.int64(18), np.int64(7)]
    arrays = [simulated["x"], simulated["w"], simulated["out"] * 0]

    found, reports = run(
        emulator_faults.text_of("shared"), (2, 1), (16, 16), [*arrays, *sizes]
    )

    # The simulator rounds products before it adds them, the GPU's fma does not.
    np.testing.assert_allclose(found[2], simulated["out"], rtol=1e-5, atol=1e-6)
    assert [] == reports


@pytest.mark.parametrize("arch", MATH)
def test_the_math_library_and_device_functions(run, recorded, arch):
    """Compiled library code, calls, local arrays, constants and structures agree."""
    n = 100
    random = np.random.default_rng(37)
    x = random.uniform(0.05, 4, n).astype(np.float32)
    x[:5] = [1e5, 3e-6, 0.3, 1.0, 2.5]  # a large angle takes the slow reduction
    z = random.uniform(0.05, 4, n)
    z[:3] = [1e9, 1e-5, 20.0]
    out, wide = np.zeros((n, 17), np.float32), np.zeros((n, 6))
    pair = np.array([10, 20, 30], np.float32).tobytes() + np.int32(3).tobytes()
    arrays = [x, z, out, wide, np.int32(n), pair]

    found, reports = run(recorded(f"math_sm{arch}"), 4, 32, arrays)

    a, i = x.astype(float), np.arange(n)
    erf = np.array([math.erf(v) for v in a])
    angle = (x * np.float32(1000)).astype(float)
    with np.errstate(over="ignore"):
        expected = [np.exp(a), np.tanh(a), np.log(a), np.sin(a), np.cos(angle), a**0.3]
        expected += [erf, a**-0.5, np.fmod(x, np.float32(0.7)), np.log1p(a)]
        expected += [np.expm1(a), a / 3, np.exp2(a), np.cbrt(a), 2 * a + np.sqrt(a)]
    counts = i * (n & 7) + ((i & 7) == (n & 7))
    expected.append(counts + [1, 2, 3, 4][n & 3] + np.array([10, 20, 30])[i % 3])
    bits = [v.bit_count() + 32 - v.bit_length() for v in range(n)]
    first = [(v & -v).bit_length() for v in range(n)]
    expected.append(i % 7 * 1000 + i // 11 * 10 + np.array(bits) + first)
    with np.errstate(over="ignore"):
        double = [np.exp(z), np.log(z), np.sin(z), z / 3, np.sqrt(z), np.tanh(z)]
    with np.errstate(over="ignore"):
        singles = np.array(expected, float).T.astype(np.float32)
    np.testing.assert_allclose(found[2], singles, rtol=5e-6, atol=1e-6)
    np.testing.assert_allclose(found[3], np.array(double).T, rtol=1e-14)
    assert [] == reports
