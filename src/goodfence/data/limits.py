"""How large a file may be before it is refused, so that a small file cannot fill the memory."""

from __future__ import annotations

from goodfence.errors import SizeProblem, require

DEFAULT_MAX_BYTES = 2 * 2**30
"""The largest file, counted as it lies in memory once it is inflated: 2 GiB."""

LONGEST_LINE = 2**20
"""The longest line of a text file, in bytes: 1 MiB. A rating needs a hundred."""

_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def check_limit(max_bytes: int) -> None:
    """Raise `SettingError` unless `max_bytes` can be a limit."""
    whole = isinstance(max_bytes, int) and not isinstance(max_bytes, bool)
    require(whole and max_bytes >= 1, "max_bytes", "a positive integer", max_bytes)


def too_large(name: str, max_bytes: int) -> SizeProblem:
    """Return the error for a file that is, or inflates to, more than `max_bytes`.

    Examples
    --------
    >>> str(too_large("a.parquet", 2 * 2**30)).partition(";")[0]
    "'a.parquet' must be at most 2 GiB once inflated, and is more"
    """
    return SizeProblem(
        f"{name!r} must be at most {readable(max_bytes)} once inflated, and is more; "
        "raise the limit with max_bytes (--max-bytes)"
    )


def readable(n_bytes: int) -> str:
    """Return a number of bytes as people write it.

    Examples
    --------
    >>> readable(3 * 2**29), readable(800)
    ('1.5 GiB', '800 bytes')
    """
    for size, unit in _UNITS:
        if n_bytes >= size:
            return f"{n_bytes / size:.4g} {unit}"
    return f"{n_bytes} bytes"
