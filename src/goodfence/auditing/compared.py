"""What a frontier compares unless told otherwise, and what each way is called."""

from __future__ import annotations

from typing import Any, TypeAlias

from goodfence.attack.attack import is_mechanism
from goodfence.errors import SettingError
from goodfence.models.mcsherry_mironov import McSherryMironov
from goodfence.models.neighbour_cf import NeighbourCF
from goodfence.models.private.base import PrivateRecommender
from goodfence.models.private_cf import PrivateCF
from goodfence.models.private_means import PrivateMeans
from goodfence.models.recommender import Recommender
from goodfence.selection.knn import KNN
from goodfence.selection.mechanism import Mechanism
from goodfence.selection.npns import NPNS
from goodfence.selection.pncf import PNCF
from goodfence.selection.ppns import PPNS

Compared: TypeAlias = "Mechanism | Recommender"

_FAMILIES: dict[type, str] = {KNN: "kNN", NPNS: "nPNS", PNCF: "PNCF", PPNS: "PPNS"}
_MODELS: dict[type, str] = {
    PrivateCF: "PrivateCF",
    PrivateMeans: "PrivateMeans",
    McSherryMironov: "McSherry–Mironov",
}


def default_list(n_users: int) -> list[Compared]:
    """Return the mechanisms that fit so many users, over a few settings, and the private models over epsilon."""
    ways: list[Any] = [
        *(KNN(k=k) for k in (30, 50, 100)),
        *(PPNS(k=50, beta=beta) for beta in (2, 4, 7)),
        *(NPNS(k=50, within=beta) for beta in (4, 7)),
        NPNS(k=50),
        *(PNCF(k=50, epsilon=epsilon, within=7) for epsilon in (1.0, 10.0)),
    ]
    private: list[Any] = [
        *(PrivateCF(epsilon=epsilon, unit="rating") for epsilon in (0.5, 1.0, 4.0)),
        *(PrivateCF(epsilon=epsilon, unit="user") for epsilon in (1.0, 4.0, 8.0)),
    ]
    return [way for way in ways if _fits(way, n_users)] + private


def short_list(n_users: int, mechanism: Mechanism | None = None) -> list[Compared]:
    """Return each way once, with the k of `mechanism` if there is one, as far as they fit so many users.

    Examples
    --------
    >>> [family_of(way) for way in short_list(60, KNN(k=20))]
    ['kNN', 'nPNS', 'PrivateMeans, per rating', 'PrivateCF, per rating']
    """
    k = 50 if mechanism is None else mechanism.k
    ways: list[Any] = [
        KNN(k=k),
        PPNS(k=k, beta=7),
        NPNS(k=k),
        PNCF(k=k, within=7),
    ]
    private: list[Any] = [PrivateMeans(epsilon=1.0), PrivateCF(epsilon=1.0)]
    return [way for way in ways if _fits(way, n_users)] + private


def family_of(way: Any) -> str:
    """Return the family: the mechanism's name, or the model's with its unit.

    Examples
    --------
    >>> family_of(PPNS(k=5, beta=2)), family_of(PrivateCF(epsilon=1.0))
    ('PPNS', 'PrivateCF, per rating')
    """
    if isinstance(way, NeighbourCF):
        return family_of(way.mechanism) + (", item-based" if way.axis == "item" else "")
    if isinstance(way, PrivateRecommender):
        return f"{_MODELS.get(type(way), type(way).__name__)}, per {way.unit}"
    return _FAMILIES.get(type(way), type(way).__name__)


def label_of(way: Any) -> str:
    """Return the settings that tell members of one family apart.

    Examples
    --------
    >>> label_of(PPNS(k=5, beta=2)), label_of(PrivateCF(epsilon=1.0))
    ('k=5, β=2', 'ε=1')
    """
    mechanism = way.mechanism if isinstance(way, NeighbourCF) else way
    if isinstance(mechanism, PrivateRecommender):
        return f"ε={mechanism.epsilon:g}"
    if not is_mechanism(mechanism):
        return ""
    words = [f"k={mechanism.k}"]
    beta = getattr(mechanism, "beta", None) or getattr(mechanism, "within", None)
    if beta is not None:
        words.append(f"β={beta}")
    elif isinstance(mechanism, NPNS | PNCF):
        words.append("whole list")
    epsilon = getattr(mechanism, "epsilon", None)
    if epsilon is not None and (isinstance(mechanism, PNCF) or epsilon != 1):
        words.append(f"ε={epsilon:g}")
    return ", ".join(words)


def name_of(way: Any) -> str:
    """Return family and settings.

    Examples
    --------
    >>> name_of(NeighbourCF(KNN(k=5))) == name_of(KNN(k=5))
    True
    """
    return f"{family_of(way)} {label_of(way)}".strip()


def _fits(mechanism: Mechanism, n_users: int) -> bool:
    try:
        mechanism.reach(n_users - 1)
    except SettingError:
        return False
    return True
