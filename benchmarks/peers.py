"""Environments of the peers: each library in its own, so that none decides what goodfence runs with."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# LensKit asks for PyTorch; the named release keeps it from bringing packages for graphics cards.
PACKAGES = {
    "implicit": [["implicit==0.7.*", "scipy"]],
    "similaripy": [["similaripy==0.7.*"]],
    "sparse-dot-topn": [["sparse-dot-topn==1.*"]],
    "scikit-learn": [["scikit-learn>=1.5"]],
    "surprise": [["scikit-surprise>=1.1.4", "pandas"]],
    "lenskit": [["torch==2.13.0"], ["lenskit>=2025.1"]],
}


def python_of(peer: str) -> Path:
    """Return the interpreter of the peer's environment; make it if it is not there."""
    if peer in ("goodfence", "raters"):
        return Path(sys.executable)
    folder = ROOT / f".venv-{peer}"
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    wanted = repr(PACKAGES[peer])
    if not stamp.is_file() or stamp.read_text() != wanted:
        print(f"installing {peer} in its own environment", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        for packages in PACKAGES[peer]:
            install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*install, *packages], check=True)
        stamp.write_text(wanted)
    return python


def run_worker(peer: str, module: str, *arguments: str, threads: int, timeout: float) -> str | None:
    """Run a worker in the peer's environment; return the last line it prints, or None if it could not finish."""
    limits = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), str(threads)
    )
    command = [str(python_of(peer)), str(ROOT / "benchmarks" / module), peer, *arguments]
    try:
        done = subprocess.run(
            command, env={**os.environ, **limits}, stdout=subprocess.PIPE, text=True, timeout=timeout, check=True
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"{peer}: {type(error).__name__}", file=sys.stderr)
        return None
    return done.stdout.strip().splitlines()[-1]
