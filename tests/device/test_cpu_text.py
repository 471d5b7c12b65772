"""Each system's text gives the same kind of identity."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewise.device.cpu_text import Cpu, parse_cpu, slug

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> str:
    """Return a text as the system writes it, long lists shortened."""
    return (RECORDED / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cpuinfo_amd_epyc_7763", "amd-epyc-7763"),
        ("cpuinfo_intel_xeon_8481c", "intel-xeon-platinum-8481c"),
        ("cpuinfo_neoverse_n1", "arm-neoverse-n1"),
        ("cpuinfo_arm_unlisted", "arm-0x51-0xc01"),
        ("lscpu_intel_i9", "13th-gen-intel-core-i9-13900k"),
        ("sysctl_apple_m2", "apple-m2-pro"),
        ("sysctl_intel_mac", "intel-core-i7-9750h"),
    ],
)
def test_names_the_processor(name: str, expected: str):
    """The name is the maker's, without marks, frequency and filler words."""
    assert expected == parse_cpu(recorded(name)).slug


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cpuinfo_amd_epyc_hidden", "amd-epyc-25.17"),
        ("cpuinfo_intel_xeon_hidden", "intel-xeon-6.85"),
    ],
)
def test_hidden_number_is_replaced(name: str, expected: str):
    """A virtual machine that hides the model is told apart by family and model."""
    assert expected == parse_cpu(recorded(name)).slug


def test_reads_windows_identifier():
    """Windows's variable gives maker, family and model."""
    text = "AMD64 Family 25 Model 97 Stepping 2, AuthenticAMD"

    assert Cpu("AMD", "25", "97") == parse_cpu(text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cpuinfo_intel_xeon_hidden", ("avx", "avx2", "avx512f")),
        ("cpuinfo_neoverse_n1", ("aes", "asimd", "asimddp")),
        ("lscpu_intel_i9", ("avx", "avx2", "avx_vnni")),
        ("sysctl_intel_mac", ("avx1.0", "de", "fma")),
    ],
)
def test_reads_features(name: str, expected: tuple[str, ...]):
    """The features are the system's words, sorted."""
    assert expected == parse_cpu(recorded(name)).features[:3]


@pytest.mark.parametrize("text", ["", "nothing here", "\0\0:\0"])
def test_unreadable_text_is_unknown(text: str):
    """A text without a name gives a CPU that says so."""
    assert "unknown" == parse_cpu(text).slug


def test_slug_can_name_a_file():
    """Whatever a maker writes, only file-name characters are left."""
    assert "a-b-c.5-d" == slug(" A/b:c.5\\d\u00ae(R)..")
