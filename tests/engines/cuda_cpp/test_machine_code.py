"""The machine code of the register-blocked kernels is what was meant."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.engines.gpu import resources
from tests.engines.gpu.cases import KERNELS

pytest.importorskip("cuda.core")
pathfinder = pytest.importorskip("cuda.pathfinder")
SIMT = [kernel for kernel in KERNELS if "simt" in kernel]


@pytest.fixture(scope="module")
def disassembler():
    """Return the path of nvdisasm, a package of its own on PyPI."""
    found = pathfinder.find_nvidia_binary_utility("nvdisasm")
    if found is None:
        pytest.skip("nvdisasm is not installed: pip install nvidia-cuda-nvdisasm")
    return found


@pytest.fixture
def machine_code(disassembler, tmp_path):
    """Return a function that lists an artifact's instructions and labels."""

    def listed(made):
        path = tmp_path / "kernel.cubin"
        path.write_bytes(made.code)
        text = subprocess.run(
            [disassembler, "-c", str(path)],
            capture_output=True, text=True, check=True, timeout=60,
        ).stdout  # fmt: skip
        parts = re.split(r"\n\.text\.", text)
        (body,) = (part for part in parts if part.startswith(made.entry + ":"))
        return instructions(body)

    return listed


def instructions(body):
    """Return the instructions and the place of each label."""
    found, labels = [], {}
    for line in body.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label[1]] = len(found)
        elif code := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;", line):
            found.append(code[1])
    return found, labels


def inner_loop(found, labels):
    """Return the code from the last backward branch's target to it, without NOPs."""
    for at in range(len(found) - 1, -1, -1):
        branch = re.search(r"\bBRA\b.*`\((\.L_x_\d+)\)", found[at])
        if branch and labels[branch[1]] < at:
            return [c for c in found[labels[branch[1]] : at + 1] if "NOP" not in c]
    raise AssertionError("there is no loop")


@pytest.mark.parametrize("kernel", SIMT)
def test_most_of_the_loop_multiplies(kernel, machine_code):
    """At least 80 % of the inner loop's instructions are FFMA."""
    loop = inner_loop(*machine_code(resources.artifact(kernel, "sm_90")))

    assert sum("FFMA" in code for code in loop) >= 0.8 * len(loop)


@pytest.mark.parametrize("kernel", SIMT)
def test_shared_memory_is_read_by_16_bytes(kernel, machine_code):
    """Every shared load of the inner loop that loads is one of 128 bits."""
    loop = inner_loop(*machine_code(resources.artifact(kernel, "sm_90")))
    loads = [
        code for code in loop if re.search(r"\bLDS\b", code) and "@!PT" not in code
    ]

    assert loads
    assert [] == [code for code in loads if "LDS.128" not in code]


@pytest.mark.parametrize("kernel", SIMT)
def test_tiles_are_fetched_by_16_bytes(kernel, machine_code):
    """Every asynchronous copy of the inner loop is one of 128 bits."""
    loop = inner_loop(*machine_code(resources.artifact(kernel, "sm_90")))
    copies = [code for code in loop if "LDGSTS" in code]

    assert copies
    assert [] == [code for code in copies if ".128" not in code]


@pytest.mark.parametrize("kernel", SIMT)
def test_the_epilogue_is_inlined(kernel, machine_code):
    """There is no call."""
    found, _ = machine_code(resources.artifact(kernel, "sm_90"))

    assert [] == [code for code in found if "CALL" in code]
