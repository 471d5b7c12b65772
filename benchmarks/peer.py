"""
One peer in a process of its own: reads problems and turns, answers with times.

    PYTHON benchmarks/peer.py NAME        (bench_peers.py drives it)

Each line on standard input is a JSON value: [epilogue, dtype, [m, n, k]] makes a
problem ready and answers whether it can be served; a number times so many calls and
answers with nanoseconds a call. Needs NumPy and the peer alone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from benchmarks.problems import EPILOGUES, arguments

Call = Callable[[], Any]


def with_numpy(epilogue: str, args: list[Any]) -> Call:
    """Be plain NumPy, the control of all."""
    function = EPILOGUES[epilogue]
    return lambda: function(*args)


def with_tilewise(epilogue: str, args: list[Any]) -> Call:
    """Run the decision that is stored, or made now."""
    from tilewise import tuned_kernel

    kernel = tuned_kernel(EPILOGUES[epilogue])
    return lambda: kernel(*args)


def with_jax(epilogue: str, args: list[Any]) -> Call:
    """Compile the same expression, written with jax.numpy."""
    import jax

    jax.config.update("jax_enable_x64", True)
    function = EPILOGUES[epilogue]
    compiled = jax.jit(FunctionType(function.__code__, {"np": jax.numpy}))
    given = [jax.device_put(a) for a in args]
    return lambda: compiled(*given).block_until_ready()


def torch_expression(epilogue: str) -> Callable[..., Any]:
    """Write the epilogue with torch's own fused functions, as its users do."""
    import torch
    from torch.nn.functional import gelu, relu, silu

    forms = {
        "relu": lambda x, w, b: relu(torch.addmm(b, x, w)),
        "gelu": lambda x, w, b: gelu(torch.addmm(b, x, w), approximate="tanh"),
        "silu": lambda x, w, b: silu(torch.addmm(b, x, w)),
        "residual": lambda x, w, b: torch.addmm(b, x, w, alpha=0.5),
        "identity": lambda x, w, b: x @ w,
    }
    return forms[epilogue]


def with_torch(epilogue: str, args: list[Any]) -> Call:
    """Run eagerly."""
    import torch

    function, given = torch_expression(epilogue), [torch.from_numpy(a) for a in args]

    def call() -> Any:
        with torch.inference_mode():
            return function(*given)

    return call


def with_torch_compile(epilogue: str, args: list[Any]) -> Call:
    """Compile for these sizes alone."""
    import torch

    torch._dynamo.reset()
    function, given = torch_expression(epilogue), [torch.from_numpy(a) for a in args]
    compiled = torch.compile(function, dynamic=False)

    def call() -> Any:
        with torch.inference_mode():
            return compiled(*given)

    return call


def with_numexpr(epilogue: str, args: list[Any]) -> Call:
    """Let numexpr compute the epilogue of NumPy's product."""
    import numexpr

    x, w, b = args
    half, one = np.float32(0.5), np.float32(1)
    text = {
        "relu": "where(p + b > 0, p + b, 0)",
        "gelu": "h * (p + b) * (l + tanh(c * ((p + b) + d * (p + b)"
        " * (p + b) * (p + b))))",
        "silu": "(p + b) / (l + exp(-(p + b)))",
        "residual": "p * h + b",
        "identity": "p",
    }[epilogue]
    kind = x.dtype.type
    more = {"h": kind(half), "l": kind(one), "c": kind(0.7978845608028654)}
    more |= {"d": kind(0.044715), "b": b}
    if epilogue == "identity":
        return lambda: x @ w
    return lambda: numexpr.evaluate(text, {"p": x @ w, **more})


PEERS = {
    "numpy": with_numpy, "tilewise": with_tilewise, "jax": with_jax,
    "torch": with_torch, "torch.compile": with_torch_compile, "numexpr": with_numexpr,
}  # fmt: skip


def ready(peer: str, epilogue: str, dtype: str, size: list[int]) -> tuple[Call, Any]:
    """Make a call and check its result against NumPy; the error is the answer."""
    m, n, k = size
    args = arguments(epilogue, (m, n, k), dtype)
    call = PEERS[peer](epilogue, args)
    begun = time.perf_counter()
    found = np.asarray(call())
    call()
    wanted = EPILOGUES[epilogue](*args)
    error = float(np.max(np.abs(found - wanted)) / max(np.max(np.abs(wanted)), 1))
    if not error <= (1e-4 if dtype == "float32" else 1e-10):
        raise ValueError(f"{peer} differs from NumPy by {error}")
    return call, {"ready_s": round(time.perf_counter() - begun, 3)}


def main(peer: str) -> None:
    """Answer until the input ends."""
    call: Call = print
    for line in sys.stdin:
        asked = json.loads(line)
        if isinstance(asked, int):
            begun = time.perf_counter_ns()
            for _ in range(asked):
                call()
            answer: Any = (time.perf_counter_ns() - begun) / asked
        else:
            try:
                call, answer = ready(peer, *asked)
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
