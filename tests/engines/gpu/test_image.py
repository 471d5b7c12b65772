"""An image is checked before it is an artifact."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewise.engines.gpu.image import Compiled, checked, spilled_bytes, versions
from tilewise.errors import EngineError

CUBINS = Path(__file__).parents[2] / "device" / "cubins"
PTX = b".visible .entry kk(\n"
LOG = """ptxas info    : Compiling entry function 'kk_any' for 'sm_90'
ptxas info    : Function properties for kk_any
    40 bytes stack frame, 48 bytes spill stores, 56 bytes spill loads
ptxas info    : Compiling entry function 'kk' for 'sm_90'
ptxas info    : Function properties for kk
    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
"""


def compiled(arch=90, **changed):
    """Return what a compiler gave."""
    given = {
        "cubin": (CUBINS / f"sm_{arch}.cubin").read_bytes(),
        "ptx": PTX,
        "entries": ("kk",),
        "log": LOG,
    }
    return Compiled(**{**given, **changed})


def test_an_artifact():
    """The figures of the first entry are kept, with what the log says of spills."""
    made = checked(compiled(), "sm_90", "e/m", ("numpy",), 12.5)

    figures = {
        "registers": 12, "shared_bytes": 256, "spill_bytes": 12, "stack_bytes": 0,
        "code_bytes": 512, "cubin_bytes": 3696,
    }  # fmt: skip
    assert figures == dict(made.resources)
    assert ("cubin", "kk", "sm_90", "e/m", PTX, ()) == (
        made.kind, made.entry, made.arch, made.variant, made.text, made.verified,
    )  # fmt: skip


@pytest.mark.parametrize(("arch", "shared"), [(75, 256), (90, 256), (120, 256)])
def test_shared_memory_of_the_kernel(arch, shared):
    """What the system takes from sm_90 on is no part of the kernel's own."""
    made = checked(compiled(arch, dynamic_shared=1000), f"sm_{arch}", "e/m", (), 0.0)

    assert shared + 1000 == dict(made.resources)["shared_bytes"]


@pytest.mark.parametrize(
    ("made", "arch", "reason"),
    [
        (compiled(cubin=b""), "sm_90", "e/m for sm_90: the image is empty"),
        (compiled(cubin=b"PTX text"), "sm_90", "is no ELF file"),
        (compiled(), "sm_80", "e/m: the image is for sm_90, not sm_80"),
        (compiled(entries=("other",)), "sm_90", "has not .*'other'.*, but kk"),
        (compiled(entries=()), "sm_90", "has not"),
        (compiled(ptx=b""), "sm_90", "the PTX has no entry"),
        (compiled(), "sm_70", "'sm_70' is not known"),
    ],
    ids=["empty", "text", "arch", "entry", "entries", "ptx", "unknown"],
)
def test_what_is_refused(made, arch, reason):
    """Nothing empty, foreign or without its entry becomes an artifact."""
    with pytest.raises(EngineError, match=reason):
        checked(made, arch, "e/m", (), 0.0)


@pytest.mark.parametrize(
    ("entry", "expected"), [("kk", 12), ("kk_any", 104), ("k", 0), ("other", 0)]
)
def test_spills_of_an_entry(entry, expected):
    """Another entry's spills are not counted, whose name begins alike."""
    assert expected == spilled_bytes(LOG, entry)


def test_versions():
    """Exact versions of what is installed; what is not stays out."""
    found = dict(versions(("pytest", "no-such-distribution")))

    assert {"pytest": pytest.__version__} == found
