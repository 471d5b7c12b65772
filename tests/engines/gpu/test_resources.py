"""Every variant compiles for every arch, and what it takes is in a committed table."""

from __future__ import annotations

import pytest

from tests.engines.gpu import resources
from tests.engines.gpu.cases import KERNELS, tile_of
from tilewise.api.build_ahead import ARCHS
from tilewise.device.arch import arch_of, occupancy
from tilewise.model.variant import Variant

pytest.importorskip("numba.cuda")
pytest.importorskip("cuda.core")
DEFAULT = "cuda_cpp/simt tile=128x128x16"


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_variant_on_an_arch(kernel, arch):
    """A variant compiles, and with the committed compilers to the committed figures."""
    made_with, table = resources.read()
    expected = next(row for row in table if row[:2] == [kernel, arch])
    found = resources.row(kernel, arch)

    if made_with != resources.versions():
        expected, found = [*expected[:2], "0"], [*found[:2], found[4]]
    assert expected == found


def test_nothing_is_spilled():
    """No variant spills on any arch, and none is missing."""
    _, table = resources.read()

    assert {(k, a, "0") for k in KERNELS for a in ARCHS} == {
        (kernel, arch, spilled) for kernel, arch, _, _, spilled, _ in table
    }


def test_the_default_fills_an_sm():
    """Occupancy times tile intensity is that of 64x64x16 with 4x4 at 63 registers."""
    figures = dict(resources.artifact(DEFAULT, "sm_90").resources)
    variant, arch = Variant.parse(DEFAULT), arch_of("sm_90")
    m, n, _ = tile_of(variant)
    filled = occupancy(
        arch, resources.threads(variant), figures["registers"], figures["shared_bytes"]
    )

    yardstick = occupancy(arch, 256, 63, 16384) * (64 * 64 / 128)
    assert filled * (m * n / (m + n)) >= yardstick


@pytest.mark.parametrize("kernel", ["numba_cuda/global", "cuda_cpp/naive"])
def test_nothing_of_cuda_core_is_kept(kernel):
    """An artifact holds bytes: without a driver cuda.core's objects hang on repr."""
    found = resources.artifact(kernel, "sm_90")

    assert (bytes, bytes) == (type(found.code), type(found.text))
