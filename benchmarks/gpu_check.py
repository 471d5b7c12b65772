"""
Check the CUDA engines on a machine with a GPU: `python benchmarks/gpu_check.py`.

One script of at most eight minutes. Beside this source tree it needs numba-cuda,
cuda-core, CuPy and NumPy below 2.5, and no place to write but its record: everything
is built in memory. A check that fails is a row, not the end. `--dry-run` goes through
all that the emulated device can do, at small sizes; then nothing is timed.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

RECORD = HERE / "records" / "gpu_check.jsonl"
NAMES = ("x", "w", "b")
TOOLS = ("numpy", "numba", "numba-cuda", "cuda-core", "cuda-bindings",
         "nvidia-cuda-nvrtc", "nvidia-nvjitlink", "cupy-cuda13x", "torch")  # fmt: skip
ROUNDS, FAIR = 20, ("measured", "not tried")
FLUSH_BYTES = 256 << 20
"""Written before each timed call, so that L2 holds nothing of the last one."""


def rectified(z: Any, b: Any) -> Any:
    """Return the epilogue of a dense layer with a rectifier."""
    return np.maximum(z + b, 0)


def gaussian(z: Any, b: Any) -> Any:
    """Return the epilogue of a dense layer with the tanh form of GELU."""
    z = z + b
    inner = np.float32(0.7978845608) * (z + np.float32(0.044715) * z * z * z)
    return np.float32(0.5) * z * (1 + np.tanh(inner))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "relu": lambda x, w, b: rectified(x @ w, b),
    "gelu": lambda x, w, b: gaussian(x @ w, b),
}
EPILOGUES = {"relu": rectified, "gelu": gaussian}
LAYOUTS = ("CC", "FF", "SS", "CF")
SIZES = "64x64x64 128x512x512 1024x1024x1024 4096x4096x4096 8x4096x4096 257x509x1021"
SUITE = [tuple(map(int, sizes.split("x"))) for sizes in SIZES.split()]


@dataclass
class Check:
    """The rows so far, the device, and when the time is over."""

    dry: bool
    deadline: float
    device: Any = None
    cupy: Any = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    runs: dict[tuple[str, ...], Any] = field(default_factory=dict)

    def note(self, section: str, name: str, ok: bool, **details: Any) -> None:
        """Keep and print one row."""
        row = {"section": section, "name": name, "ok": ok, **details}
        self.rows.append(row)
        word = "ok  " if ok else "FAIL"
        told = " ".join(f"{key}={value}" for key, value in details.items())
        print(f"{word} {section:11} {name:48} {told[:160]}", flush=True)

    def guarded(self, section: str, name: str, step: Callable[[], Any]) -> Any:
        """Run one step; an exception is a row that says what failed."""
        if time.monotonic() > self.deadline:
            self.note(section, name, False, reason="not tried: the time is over")
            return None
        try:
            return step()
        except Exception as error:
            self.note(section, name, False, reason=f"{type(error).__name__}: {error}")
            return None

    def on_device(self, host: Any) -> Any:
        """Return an array of the device with a host array's values and strides."""
        order = "F" if host.flags.f_contiguous and not host.flags.c_contiguous else "C"
        if self.cupy is not None:
            return self.cupy.array(host, order=order)
        packed = np.ascontiguousarray(host.T if order == "F" else host)
        memory = self.device.allocate(packed.nbytes)
        array = self.device.array(memory, packed.shape, packed.dtype)
        array.set(packed)
        return array.T if order == "F" else array


def posed(function: Callable[..., Any], args: Any, residency: str) -> Any:
    """Return the problem of a call."""
    from tilewise.model.problem import pose
    from tilewise.model.spec import match
    from tilewise.model.trace import ArgForm, trace

    forms = {
        name: ArgForm("array", str(arg.dtype), arg.ndim)
        for name, arg in zip(NAMES, args, strict=True)
    }
    return pose(match(trace(function, forms), NAMES), args, residency=residency)


def variants(check: Check, problem: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield each engine's variants that serve a problem, with the target."""
    from tilewise.device.arch import device_target
    from tilewise.engines.cuda_cpp.engine import CudaCppEngine
    from tilewise.engines.numba_cuda.engine import NumbaCudaEngine

    target = device_target(check.device)
    for engine in (NumbaCudaEngine(), CudaCppEngine()):
        for variant in engine.variants(problem, target):
            if engine.rejects(variant, problem, target) is None:
                yield engine, variant, target


def run_of(check: Check, engine: Any, variant: Any, target: Any, problem: Any) -> Any:
    """Build and load a variant, once for the same code; a row tells its figures."""
    parts = repr(engine.key_parts(variant, problem, target))
    key = (str(variant), target.arch, parts)
    if key not in check.runs:
        made = engine.build(variant, problem, target)
        started = time.perf_counter()
        check.runs[key] = engine.load(made, variant, problem)
        load_ms = 1e3 * (time.perf_counter() - started)
        figures = dict(made.resources)
        check.note(
            "build", str(variant), not figures["spill_bytes"], dtype=problem.spec.dtype,
            ms=round(made.build_ms), load_ms=round(load_ms, 1), **figures,
        )  # fmt: skip
    return check.runs[key]


def environment(check: Check) -> None:
    """Tell versions and the device."""
    found = {}
    for tool in TOOLS:
        with suppress(metadata.PackageNotFoundError):
            found[tool] = metadata.version(tool)
    properties = check.device.properties
    words = ("compute_capability", "sm_count", "memory_bytes")
    about = {word: str(getattr(properties, word)) for word in words}
    check.note("environment", "versions", True, **found)
    check.note("environment", properties.name, True, **about)


def arguments(sizes: Any, layout: str, dtype: str, special: bool, seed: int) -> Any:
    """Return fresh host arguments; S is strided, special ones have NaN and infinity."""
    m, n, k = sizes
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int, order: str) -> Any:
        if order == "F":
            return random.standard_normal((columns, rows)).astype(dtype).T
        if order == "S":
            return random.standard_normal((2 * rows, 2 * columns)).astype(dtype)[
                ::2, ::2
            ]
        return random.standard_normal((rows, columns)).astype(dtype)

    x, w = matrix(m, k, layout[0]), matrix(k, n, layout[1])
    b = random.standard_normal(n).astype(dtype)
    if special and x.size:
        x[random.random(x.shape) < 0.02] = np.nan
        b[random.random(n) < 0.2] = np.inf
    return [x, w, b]


def case_of(check: Check, function: Callable[..., Any], host: Any) -> Any:
    """Put arguments as the tuner does for arrays of the device."""
    from tilewise.runtime.on_device import reference_on
    from tilewise.tuner.bench import Bench
    from tilewise.tuner.contest import Case

    (m, k), n, dtype = host[0].shape, host[1].shape[1], host[0].dtype
    bench = Bench(check.device, reference_on(function))
    return Case(tuple(host), function, None, (m, n), dtype, k, bench=bench)


def correctness(check: Check) -> None:
    """Verify every variant as the tuner does: wider references, guards and poison."""
    from tilewise.tuner.verify import prepare

    whole = [(1, 1, 1), (33, 31, 17), (128, 132, 64), (257, 255, 129), (64, 48, 0)]
    plans = [("relu", layout, "float32") for layout in LAYOUTS]
    plans += [("gelu", "CC", "float32"), ("relu", "CC", "float64")]
    for at, (name, layout, dtype) in enumerate(plans[-2:] if check.dry else plans):
        function, cases = FUNCTIONS[name], []
        for seed, sizes in enumerate(whole[:2] if check.dry else whole):
            host = arguments(sizes, layout, dtype, bool(seed % 2), 10 * at + seed)
            cases.append(case_of(check, function, host))
        exams = [prepare(case) for case in cases]
        problem = posed(function, cases[1].args, "device")
        for built in variants(check, problem):
            label = f"{built[1]} {name} {layout} {dtype}"
            step = partial(one_variant, check, (*built, problem), exams, label)
            check.guarded("correctness", label, step)


def one_variant(check: Check, built: Any, exams: Any, label: str) -> None:
    """Let one variant sit all exams, and note the largest error or the first fault."""
    from tilewise.tuner.verify import verify

    run = run_of(check, *built)
    verdicts = [verify(run, exam.case, exam) for exam in exams]
    wrong = next((v.reason for v in verdicts if not v.ok), "")
    worst = max(v.error or 0.0 for v in verdicts)
    check.note("correctness", label, not wrong, worst=round(worst, 3), wrong=wrong)


def tuning(check: Check) -> None:
    """Decide between all variants and the reference as a call on device arrays does."""
    from tilewise.tuner.contest import Contestant
    from tilewise.tuner.planner import decide

    sizes = (33, 31, 17) if check.dry else (1024, 1024, 1024)
    host = arguments(sizes, "CC", "float32", False, 8)
    case = case_of(check, FUNCTIONS["relu"], host)
    problem = posed(case.reference, case.args, "device")
    entered = [
        Contestant(variant, run_of(check, engine, variant, target, problem))
        for engine, variant, target in variants(check, problem)
    ]
    decided = decide(case, entered[:2] if check.dry else entered, budget_s=5.0)
    for one in decided.candidates:
        us, ok = one.timing and round(one.timing.median_us, 2), one.status in FAIR
        check.note("tuning", str(one.variant), ok, us=us, reason=one.reason)
    check.note("tuning", f"the winner is {decided.variant}", True)


def speed(check: Check) -> None:
    """Time every variant against CuPy's expression, its product, and torch.compile."""
    for (name, function), sizes in itertools.product(FUNCTIONS.items(), SUITE):
        label = f"{name} {'x'.join(map(str, sizes))}"
        step = partial(one_size, check, function, sizes, label)
        check.guarded("speed", label, step)


def one_size(check: Check, function: Any, sizes: Any, label: str) -> None:
    """Time all candidates of one size, interleaved, with a cold L2."""
    args = [check.on_device(a) for a in arguments(sizes, "CC", "float32", False, 5)]
    out = check.cupy.empty((sizes[0], sizes[1]), np.float32)
    problem = posed(function, args, "device")
    product, fused = check.cupy.matmul, check.cupy.fuse()(EPILOGUES[label[:4]])
    calls: dict[str, Callable[[], Any]] = {
        "cupy": lambda: function(*args),
        "cupy product alone": lambda: product(*args[:2], out=out),
    }
    if check.guarded("speed", "cupy.fuse", lambda: fused(out, args[2])) is not None:
        calls["cupy product + fused"] = lambda: fused(product(*args[:2]), args[2])
    calls.update(with_torch(label, args))
    for engine, variant, target in variants(check, problem):
        run = run_of(check, engine, variant, target, problem)
        calls[str(variant)] = lambda run=run: run(*args, out)
    times = timed(check.cupy, calls)
    ours = {k: v for k, v in times.items() if "/" in k}
    best = min(ours, key=lambda k: ours[k])
    flops = 2 * sizes[0] * sizes[1] * sizes[2]
    check.note(
        "speed", label, True, best=best, best_us=round(ours[best], 2),
        tflops=round(flops / ours[best] / 1e6, 2), l2="cold", rounds=ROUNDS,
        ratio_to_cupy=round(times["cupy"] / ours[best], 3),
        all_us={k: round(v, 2) for k, v in times.items()},
    )  # fmt: skip


def with_torch(label: str, args: Any) -> dict[str, Callable[[], Any]]:
    """Return torch.compile's form of relu where torch is there."""
    if label[:4] != "relu" or importlib.util.find_spec("torch") is None:
        return {}
    import torch

    x, w, b = (torch.from_dlpack(a) for a in args)
    torch.backends.cuda.matmul.allow_tf32 = False
    compiled = torch.compile(lambda x, w, b: torch.relu(x @ w + b))
    return {"torch.compile": lambda: compiled(x, w, b)}


def timed(cupy: Any, calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median microseconds of each call, by CUDA events."""
    flush = cupy.empty(FLUSH_BYTES // 4, np.float32)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            flush.fill(0)
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            call()
            end.record()
            end.synchronize()
            times[name].append(1e3 * cupy.cuda.get_elapsed_time(start, end))
    return {name: statistics.median(found) for name, found in times.items()}


def residency(check: Check) -> None:
    """Run host arrays through the device and tell the time of the whole call."""
    sizes = (65, 33, 17) if check.dry else (1024, 1024, 1024)
    host = arguments(sizes, "CC", "float32", False, 9)
    problem = posed(FUNCTIONS["relu"], host, "host")
    for engine, variant, target in list(variants(check, problem))[-2:]:
        run = run_of(check, engine, variant, target, problem)
        out = np.full((sizes[0], sizes[1]), np.nan, np.float32)
        run(*host, out)
        started = time.perf_counter()
        run(*host, out)
        took_us = round(1e6 * (time.perf_counter() - started), 1)
        good = np.allclose(out, FUNCTIONS["relu"](*host), rtol=1e-3, atol=1e-3)
        check.note("residency", f"{variant} host", bool(good), call_us=took_us)


def streams(check: Check) -> None:
    """Run on a stream of the caller's, after work that is queued there."""
    host = arguments((512, 512, 512), "CC", "float32", False, 3)
    args = [check.on_device(a) for a in host]
    problem = posed(FUNCTIONS["relu"], args, "device")
    engine, variant, target = list(variants(check, problem))[-1]
    run, out = run_of(check, engine, variant, target, problem), args[1] * 0
    stream = check.cupy.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(50):
            args[0] *= 1  # the kernel must wait for this
        args[0] *= 2
        run(*args, out)
    stream.synchronize()
    good = np.allclose(
        out.get(), rectified(2 * host[0] @ host[1], host[2]), rtol=1e-3, atol=1e-3
    )
    check.note("streams", str(variant), bool(good))


def warm_start(check: Check) -> None:
    """Tell the time from an artifact to its first result."""
    host = arguments((33, 31, 17), "CC", "float32", False, 1)
    problem = posed(FUNCTIONS["relu"], host, "host")
    every = list(variants(check, problem))
    for engine, variant, target in every[:2] if check.dry else every:
        made = engine.build(variant, problem, target)
        started = time.perf_counter()
        engine.load(made, variant, problem)(*host, np.empty((33, 31), np.float32))
        check.note(
            "warm start", str(variant), True,
            first_result_ms=round(1e3 * (time.perf_counter() - started), 2),
        )  # fmt: skip


SECTIONS = (environment, correctness, tuning, speed, residency, streams, warm_start)
NEED_A_GPU = (speed, streams)


def main() -> int:
    """Run all sections; the exit status is 0 when nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--dry-run", action="store_true", help="emulate, time nothing")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--out", type=Path, default=RECORD)
    given = parser.parse_args()
    os.environ.update({"TILEWISE_DEVICE": "emulated"} if given.dry_run else {})
    from tilewise.device.chosen import chosen_device

    cupy = partial(importlib.import_module, "cupy")
    check = Check(given.dry_run, time.monotonic() + 60 * given.minutes)
    check.device = check.guarded("environment", "device", chosen_device)
    if check.device is None:
        check.note("environment", "device", False, reason="there is no GPU: --dry-run")
    elif not check.dry:
        check.cupy = check.guarded("environment", "cupy", cupy)
    for section in SECTIONS if check.device else ():
        name = section.__name__
        if check.cupy is None and section in NEED_A_GPU:
            check.note(name, "section", True, reason="not tried without a GPU")
        else:
            check.guarded(name, "section", partial(section, check))
    failed = [row for row in check.rows if not row["ok"]]
    if not given.dry_run:
        stamp = {"bench": "gpu_check", "date": time.strftime("%Y-%m-%d")}
        with given.out.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({**row, **stamp}) + "\n" for row in check.rows)
    print(f"{len(check.rows)} checks, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
