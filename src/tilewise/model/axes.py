"""An axes kernel's problem: sizes that its author named, and what its arguments are."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.model.decision import Point
from tilewise.model.problem import Problem
from tilewise.model.spec import short_hash

__all__ = ["AxesProblem", "Posed"]


@dataclass(frozen=True, slots=True)
class AxesProblem:
    """
    What is asked of an axes kernel, as far as the choice of a variant may depend on it.

    `digest` stands for the function and its axes; `point` holds the sizes by axis;
    `forms` say what each argument is besides its size, such as "x: int64 1-D C".
    """

    digest: str
    point: Point
    forms: tuple[str, ...]
    residency: str = "host"
    constants: tuple[int, ...] = ()
    device: int = 0

    @property
    def dtype(self) -> str:
        """Return "": the kernel's author makes its arguments."""
        return ""

    @property
    def label(self) -> str:
        """The combination that one decision table is for, in words."""
        bound = f", bound {self.constants}" if self.constants else ""
        return f"{', '.join(self.forms)}; {self.residency}{bound}"

    @property
    def table(self) -> str:
        """The digest of the combination."""
        key = (self.forms, self.residency, self.constants)
        return short_hash(("axes table 1", key))


Posed = Problem | AxesProblem
"""What variants compete for: a spec at arguments, or an axes kernel at sizes."""
