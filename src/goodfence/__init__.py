"""goodfence: neighbourhood-based recommendation that shows what it leaks, and can stop it.

    import goodfence as gf

Everything public is a name of this module. Names are looked up when they are first used, so that importing
goodfence costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goodfence.data.catalogue import load as load
    from goodfence.data.ratings import Ratings as Ratings
    from goodfence.data.scale import Scale as Scale
    from goodfence.data.splits import folds as folds
    from goodfence.data.splits import holdout as holdout
    from goodfence.data.splits import sample_targets as sample_targets
    from goodfence.data.synthetic import synthetic as synthetic
    from goodfence.errors import DataError as DataError
    from goodfence.errors import GoodfenceError as GoodfenceError
    from goodfence.errors import SettingError as SettingError

__version__ = "0.1.0"

_HOME = {
    "DataError": "goodfence.errors",
    "GoodfenceError": "goodfence.errors",
    "Ratings": "goodfence.data.ratings",
    "Scale": "goodfence.data.scale",
    "SettingError": "goodfence.errors",
    "folds": "goodfence.data.splits",
    "holdout": "goodfence.data.splits",
    "load": "goodfence.data.catalogue",
    "sample_targets": "goodfence.data.splits",
    "synthetic": "goodfence.data.synthetic",
}

__all__ = sorted([*_HOME, "__version__"])  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'goodfence' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
