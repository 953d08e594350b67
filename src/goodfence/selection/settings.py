"""A mechanism as plain settings, for manifests and saved models, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from goodfence.errors import SettingError, did_you_mean
from goodfence.selection.knn import KNN
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS

MECHANISMS: dict[str, type[KNN] | type[NPNS] | type[PNCF] | type[PPNS]] = {
    "KNN": KNN,
    "NPNS": NPNS,
    "PNCF": PNCF,
    "PPNS": PPNS,
}
"""The published mechanisms by name."""


def settings_of(mechanism: Mechanism) -> dict[str, Any]:
    """Return the name and every setting of a mechanism, as JSON knows them.

    Examples
    --------
    >>> settings_of(KNN(k=5))
    {'mechanism': 'KNN', 'k': 5}
    """
    kept: Any = mechanism
    if not is_dataclass(kept) or isinstance(kept, type):
        raise SettingError("mechanism must be a dataclass, so that its settings can be kept")
    plain = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(kept).items()
    }
    return {"mechanism": type(mechanism).__name__, **plain}


def mechanism_of(settings: Mapping[str, Any]) -> Mechanism:
    """Return the mechanism of these settings; the inverse of `settings_of`.

    Examples
    --------
    >>> mechanism_of({"mechanism": "KNN", "k": 5})
    KNN(k=5)
    """
    name = settings.get("mechanism")
    if name not in MECHANISMS:
        raise SettingError(f"mechanism must be one of {sorted(MECHANISMS)}, got {name!r}")
    chosen = MECHANISMS[name]
    given = {key: value for key, value in settings.items() if key != "mechanism"}
    known = {one.name for one in fields(chosen)}
    for key in given:
        if key not in known:
            raise SettingError(f"{name} has no setting {key!r}{did_you_mean(key, known)}")
    missing = [one for one in ("k", "beta") if one in known and one not in given]
    if missing:
        raise SettingError(f"{name} needs the setting {missing[0]!r}")
    return chosen(**given)
