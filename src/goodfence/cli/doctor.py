"""`goodfence doctor`: versions, threads, caches and folders, for a report of a fault."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from goodfence.cli.command import command
from goodfence.cli.data import where
from goodfence.cli.options import Output

LIBRARIES = ("numpy", "scipy", "numba", "pyarrow", "narwhals", "altair", "typer", "rich")
EXTRAS = {"adapters": ("scikit-learn", "scikit-surprise"), "lenskit": ("lenskit",), "spark": ("pyspark",)}


@command("Print versions, threads, caches and folders.")
def doctor_command(output: Output) -> None:
    """Print versions, threads, caches and folders; nothing of your data."""
    import platform

    from goodfence.parallel import thread_count

    extras = EXTRAS.items()
    found = {
        "goodfence": _version("goodfence"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
        "executable": sys.executable,
        "libraries": {name: _version(name) for name in LIBRARIES},
        "extras": {extra: {name: _version(name) for name in names} for extra, names in extras},
        "threads": {"used": thread_count(None), "cores": os.cpu_count()},
        "kernels": compiled_kernels(),
        "data": _data(),
    }
    output.tell(found, _lines(found))


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def compiled_kernels() -> dict[str, Any]:
    """Return where compiled kernels are; without a writable cache every start costs a minute."""
    from goodfence.kernels.predict import predict_for_profile

    cache = getattr(getattr(predict_for_profile, "_cache", None), "cache_path", None)
    if cache is None:  # the compiler is off
        return {"cache": None, "writable": False, "compiled": 0}
    folder = Path(cache)
    writable = os.access(folder if folder.exists() else folder.parent, os.W_OK)
    return {"cache": cache, "writable": writable, "compiled": len(list(folder.glob("*.nbc")))}


def _data() -> dict[str, Any]:
    from goodfence.data.catalogue import DATASETS, FOLDER_VARIABLE, cache_folder
    from goodfence.errors import FileProblem

    cache, here, problem = cache_folder(), [], None
    try:
        here = [one.name for one in DATASETS.values() if where(one) in ("bundled", "here")]
    except FileProblem as found:
        problem = str(found)
    told = {"variable": FOLDER_VARIABLE, "folder": os.environ.get(FOLDER_VARIABLE)}
    return {**told, "cache": str(cache), "cached": cache.is_dir(), "here": here, "problem": problem}


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    data, cache = found["data"], found["kernels"]
    kernels = f"{cache['compiled']} compiled in {cache['cache']}"
    if cache["cache"] is None:
        kernels = "the compiler is off (NUMBA_DISABLE_JIT), so everything is slow"
    elif not cache["writable"]:
        kernels += ", which cannot be written: set NUMBA_CACHE_DIR"
    lines = [
        ("goodfence", f"{found['goodfence']}   {found['python']}   {found['platform']}"),
        ("Python", found["executable"]),
        ("Libraries", _versions(found["libraries"])),
        *(("Extra", f"{name}: {_versions(parts, name)}") for name, parts in found["extras"].items()),
        ("Threads", f"{found['threads']['used']} of {found['threads']['cores']} cores"),
        ("Kernels", kernels),
        ("Data", f"{data['variable']}: {data['folder'] or 'not set'}"),
        ("Cache", f"{data['cache']}{'' if data['cached'] else ' (not there yet)'}"),
        ("Data sets", ", ".join(data["here"]) or "none"),
    ]
    return lines if data["problem"] is None else [*lines, ("Problem", data["problem"])]


def _versions(parts: dict[str, str | None], extra: str = "") -> str:
    shown = "   ".join(f"{part} {version or 'missing'}" for part, version in parts.items())
    missing = extra and None in parts.values()
    return f"{shown}; pip install 'goodfence[{extra}]'" if missing else shown
