"""The project's sessions: `nox -s tests lint types`; heavy ones are off by default."""

from __future__ import annotations

import os
from pathlib import Path

import nox

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "virtualenv"
nox.options.error_on_external_run = True

PROJECT = nox.project.load_toml("pyproject.toml")
DOMAINS = ("src", "tests", "benchmarks", "noxfile.py", ".ci")


def group(name: str) -> list[str]:
    """Return the requirements of one of the project's dependency groups."""
    return list(nox.project.dependency_groups(PROJECT, name))


def typed_dependencies() -> list[str]:
    """Return the package's dependencies but the compilers and GPU libraries (1 GB)."""
    heavy = ("cuda", "cupy", "llvmlite", "numba")
    dependencies = PROJECT["project"]["dependencies"]
    return [one for one in dependencies if not one.startswith(heavy)]


def pytest(session: nox.Session, *args: str) -> None:
    """Install the package as a user would and run pytest on it."""
    session.install(".", *group("test"))
    session.run("pytest", *args, *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the suite with the README's and the docstrings' examples; needs no GPU."""
    pytest(session, "-n", "auto", "--dist", "worksteal")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, the import law, spelling and the size limits; installs no CUDA."""
    session.install(*group("lint"))
    present = [name for name in DOMAINS if Path(name).exists()]
    session.run("ruff", "check", *present)
    session.run("ruff", "format", "--check", *present)
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": "src"})
    session.run("codespell")
    session.run("python", ".ci/sizes.py", *present)


@nox.session
def types(session: nox.Session) -> None:
    """Check types strictly; the compilers and GPU libraries are not looked into."""
    session.install(*group("types"), *typed_dependencies())
    session.run("mypy", *session.posargs)


@nox.session
def demo(session: nox.Session) -> None:
    """Install the package and run the demo twice in one store: MISS, then HIT."""
    session.install(".")
    store = {"TILEWISE_CACHE_DIR": session.create_tmp() + "/store"}
    session.run("tilewise", "demo", "--clear-cache", *session.posargs, env=store)
    session.run("tilewise", "demo", *session.posargs, env=store)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """
    Run the benchmarks, or those named, append to benchmarks/records, write the table.

    The suite comes first: its peers use the decisions that it stored. BENCH_PEERS is a
    folder of their environments, made anew where they are missing.
    """
    session.install(".", *group("test"))
    place = session.create_tmp()
    env = {"PYTHONPATH": ".", "TILEWISE_CACHE_DIR": f"{place}/store"}
    slowing = dict.fromkeys(("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"))
    paths = sorted(map(str, Path("benchmarks").glob("bench_*.py")))
    paths.sort(key=lambda path: "suite" not in path)
    for path in [f"benchmarks/bench_{name}.py" for name in session.posargs] or paths:
        venvs = os.environ.get("BENCH_PEERS", f"{place}/peers")
        more = ["--venvs", venvs] if "peers" in path else []
        session.run("python", path, *more, env={**env, **slowing})
    session.run("python", "benchmarks/table.py", env=env)


@nox.session(default=False)
def retune(session: nox.Session) -> None:
    """Measure all kernels of the named packages, as in `-- tilewise.examples`."""
    session.install(".")
    for package in session.posargs:
        session.run("tilewise", "retune", package)


@nox.session(default=False)
def guards(session: nox.Session) -> None:
    """Patch each guard of the tuner away and see that its test then fails."""
    session.install(".", *group("test"))
    session.run("python", "-m", "tests.tuner.guards")


@nox.session(default=False)
def emulate(session: nox.Session) -> None:
    """Run the heavy tests of the emulated device."""
    pytest(session, "-n", "auto", "-m", "emulate", "--timeout", "1800")


@nox.session(default=False)
def gpu(session: nox.Session) -> None:
    """Run the tests that need a CUDA device, one after the other."""
    pytest(session, "-m", "gpu")
