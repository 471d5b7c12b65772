"""What to write instead of an operation that cannot be part of a kernel."""

from __future__ import annotations

__all__ = ["instead_of"]

PRODUCTS = ("einsum", "inner", "kron", "multi_dot", "outer", "tensordot", "vdot")
REDUCTIONS = (
    "all", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod", "cumsum",
    "max", "mean", "median", "min", "nanmax", "nanmean", "nanmin", "nansum", "norm",
    "prod", "ptp", "std", "sum", "trace", "var",
)  # fmt: skip


def instead_of(name: str) -> str:
    """Return what to do instead of `np.einsum`, `.sum` and the like in a kernel."""
    bare = name.removeprefix("np.").removeprefix(".")
    if bare == "outer":
        return "Beside the product, write np.outer(u, v) as u[:, None] * v."
    if bare in PRODUCTS:
        return (
            "Write one product of two matrices as x @ w, a factor whose axes stand the "
            f"other way as w.T; compute any other {bare} outside of the kernel."
        )
    if bare in REDUCTIONS or bare.endswith(".reduce"):
        return (
            "Let the kernel return the array that is reduced, and reduce what a call "
            f"returns: {reduced(name)}."
        )
    return f"Apply {name} to the result of the kernel instead."


def reduced(name: str) -> str:
    """Write a reduction of a call's result as it was written in the kernel."""
    call = "kernel(...)"
    return f"{call}{name}(...)" if name.startswith(".") else f"{name}({call}, ...)"
