"""A container's CPU quota is found wherever its system keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewise.device.cgroup import cpu_quota, parse_cfs, parse_cpu_max

V1 = "4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n0::/system.slice\n"


def machine(root: Path, groups: str, **files: str) -> Path:
    """Lay a recorded machine under a root: its groups, and files by their path."""
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("text", "expected"),
    [("max 100000\n", None), ("150000 100000\n", 1.5), ("50000\n", 0.5), ("x y", None)],
)
def test_reads_version_2(text: str, expected: float | None):
    """The quota is the first number over the second, and max is none."""
    assert expected == parse_cpu_max(text)


@pytest.mark.parametrize(
    ("quota", "expected"), [("-1\n", None), ("200000\n", 2.0), ("", None), ("0", None)]
)
def test_reads_version_1(quota: str, expected: float | None):
    """The quota is one file over the other, and -1 is none."""
    assert expected == parse_cfs(quota, "100000\n")


def test_smallest_quota_on_the_way_holds(tmp_path: Path):
    """A group's quota counts as well as that of the groups around it."""
    root = machine(
        tmp_path,
        "0::/kubepods/pod1/app\n",
        **{
            "sys/fs/cgroup/kubepods/pod1/app/cpu.max": "400000 100000",
            "sys/fs/cgroup/kubepods/pod1/cpu.max": "250000 100000",
            "sys/fs/cgroup/kubepods/cpu.max": "max 100000",
        },
    )

    assert 2.5 == cpu_quota(root)


def test_container_sees_its_own_root(tmp_path: Path):
    """Inside a container the mount's root is the container's group."""
    root = machine(tmp_path, "0::/\n", **{"sys/fs/cgroup/cpu.max": "300000 100000"})

    assert 3.0 == cpu_quota(root)


def test_version_1_container_whose_path_is_the_hosts(tmp_path: Path):
    """A path that exists only on the host gives way to the mount's root."""
    root = machine(
        tmp_path,
        V1,
        **{
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        },
    )

    assert 1.5 == cpu_quota(root)


def test_path_above_the_root_is_the_root(tmp_path: Path):
    """A group seen from another namespace is read at the mount's root."""
    root = machine(
        tmp_path, "0::/../../other\n", **{"sys/fs/cgroup/cpu.max": "100000 100000"}
    )

    assert 1.0 == cpu_quota(root)


def test_no_groups_no_quota(tmp_path: Path):
    """A system without cgroups has no quota."""
    assert None is cpu_quota(tmp_path)


def test_quota_may_change_while_running(tmp_path: Path):
    """A quota is read anew each time, since a container can be resized."""
    quota = "sys/fs/cgroup/cpu.max"
    root = machine(tmp_path, "0::/\n", **{quota: "100000 100000"})
    before = cpu_quota(root)
    (root / quota).write_text("400000 100000")

    assert (1.0, 4.0) == (before, cpu_quota(root))
