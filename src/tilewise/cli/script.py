"""A decision as a program that measures it again, on this machine or another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewise.errors import ArgumentError
from tilewise.model.decision import DecisionTable, TableKey

__all__ = ["script_of"]

HEAD = '''"""
Measure again what was decided for {name}.

{hardware}
Written by `tilewise show {name} --script`. Run it where the kernel's module can be
imported: it keeps what it decides in that machine's store and prints it.
"""

from tilewise.cli.load import kernels_of
'''
KERNEL = """
(kernel,) = kernels_of({place!r})
"""
TUNE = """
# {label}
sizes = [
{sizes}
]
print(kernel.tune(sizes=sizes, {made}, force=True))
"""


def script_of(tables: Sequence[DecisionTable]) -> str:
    """
    Return a program that measures the points of one kernel's tables again.

    Raises ArgumentError for several kernels, and for one that a program can't import.
    """
    places = dict.fromkeys(table.place for table in tables)
    if len(places) != 1:
        told = ", ".join(sorted(filter(None, places))) or "none"
        raise ArgumentError(f"--script is for one kernel; there are: {told}")
    (place,) = places
    if not place or "<" in place:
        raise ArgumentError(
            f"{tables[0].kernel_name} is made inside a function or in a session: a "
            "program can't import it"
        )
    parts = [HEAD.format(name=tables[0].kernel_name, hardware=hardware_of(tables))]
    parts.append(KERNEL.format(place=place))
    combinations: dict[tuple[str, str], dict[str, None]] = {}
    for table in tables:
        sizes = combinations.setdefault((table.key.label, made_by(table.key)), {})
        sizes |= dict.fromkeys(rows_of(table))
    for (label, made), sizes in combinations.items():
        parts.append(TUNE.format(sizes="\n".join(sizes), label=label, made=made))
    return "".join(parts)


def made_by(key: TableKey) -> str:
    """Return the options of `tune` that make a table's arguments."""
    dtype = f"dtype={key.dtype!r}, " if key.dtype else ""
    return f"{dtype}residency={key.residency!r}"


def rows_of(table: DecisionTable) -> Iterable[str]:
    """Yield the measured points of a table as lines of a list."""
    for decision in table.decisions:
        if decision.origin != "extrapolated":
            yield f"    {dict(decision.point)},"


def hardware_of(tables: Sequence[DecisionTable]) -> str:
    """Say when and where the points were measured."""
    made = {
        table.key.fingerprint: max(d.made_utc for d in table.decisions)
        for table in tables
    }
    return "\n".join(
        f"Measured on {name}, last at {utc}." for name, utc in made.items()
    )
