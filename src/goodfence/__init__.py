"""goodfence: measure how much user data a recommender leaks, and recommend without leaking it.

    import goodfence as gf

Every public name is an attribute of this module; the published systems and the reproduction of the paper are in
`gf.papers`. Names are imported on first use, so that `import goodfence` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goodfence import papers as papers
    from goodfence.adapters.black_box import BlackBox as BlackBox
    from goodfence.adapters.http import Endpoint as Endpoint
    from goodfence.attack.exposure import exposure as exposure
    from goodfence.attack.knn_attack import AdaptiveAttack as AdaptiveAttack
    from goodfence.attack.knn_attack import CoverAttack as CoverAttack
    from goodfence.attack.knn_attack import KNNAttack as KNNAttack
    from goodfence.attack.list_attack import ListAttack as ListAttack
    from goodfence.attack.membership import MembershipAttack as MembershipAttack
    from goodfence.attack.related_items import RelatedItemsAttack as RelatedItemsAttack
    from goodfence.auditing.audit import audit as audit
    from goodfence.auditing.frontier import frontier as frontier
    from goodfence.auditing.leak_limit import assert_leak_below as assert_leak_below
    from goodfence.data.load import load as load
    from goodfence.data.ratings import Ratings as Ratings
    from goodfence.data.scale import Scale as Scale
    from goodfence.data.splits import folds as folds
    from goodfence.data.splits import holdout as holdout
    from goodfence.data.synthetic import synthetic as synthetic
    from goodfence.errors import DataError as DataError
    from goodfence.errors import GoodfenceError as GoodfenceError
    from goodfence.errors import SettingError as SettingError
    from goodfence.evaluation import evaluate as evaluate
    from goodfence.models.ease import EASE as EASE
    from goodfence.models.neighbour_cf import NeighbourCF as NeighbourCF
    from goodfence.models.persistence import load_model as load_model
    from goodfence.models.popularity import Popularity as Popularity
    from goodfence.models.private.cf import PrivateCF as PrivateCF
    from goodfence.models.private.means import PrivateMeans as PrivateMeans
    from goodfence.models.private.top_n import PrivateTopN as PrivateTopN
    from goodfence.neighbours.candidate_lists import candidate_lists as candidate_lists
    from goodfence.neighbours.similarity import Similarity as Similarity
    from goodfence.privacy.guarantee import Guarantee as Guarantee
    from goodfence.report.pages import audit_page as audit_page
    from goodfence.selection.inclusion import alpha as alpha
    from goodfence.selection.inclusion import inclusion_probabilities as inclusion_probabilities
    from goodfence.selection.knn import KNN as KNN
    from goodfence.selection.npns import NPNS as NPNS
    from goodfence.selection.pncf import PNCF as PNCF
    from goodfence.selection.ppns import PPNS as PPNS
    from goodfence.selection.sensitivity import Sensitivity as Sensitivity

__version__ = "0.3.0"

_NAMES = {
    "adapters.black_box": "BlackBox",
    "adapters.http": "Endpoint",
    "attack.exposure": "exposure",
    "attack.knn_attack": "AdaptiveAttack CoverAttack KNNAttack",
    "attack.list_attack": "ListAttack",
    "attack.membership": "MembershipAttack",
    "attack.related_items": "RelatedItemsAttack",
    "auditing.audit": "audit",
    "auditing.frontier": "frontier",
    "auditing.leak_limit": "assert_leak_below",
    "data.load": "load",
    "data.ratings": "Ratings",
    "data.scale": "Scale",
    "data.splits": "folds holdout",
    "data.synthetic": "synthetic",
    "errors": "DataError GoodfenceError SettingError",
    "evaluation": "evaluate",
    "models.ease": "EASE",
    "models.neighbour_cf": "NeighbourCF",
    "models.persistence": "load_model",
    "models.popularity": "Popularity",
    "models.private.cf": "PrivateCF",
    "models.private.means": "PrivateMeans",
    "models.private.top_n": "PrivateTopN",
    "neighbours.candidate_lists": "candidate_lists",
    "neighbours.similarity": "Similarity",
    "privacy.guarantee": "Guarantee",
    "report.pages": "audit_page",
    "selection.inclusion": "alpha inclusion_probabilities",
    "selection.knn": "KNN",
    "selection.npns": "NPNS",
    "selection.pncf": "PNCF",
    "selection.ppns": "PPNS",
    "selection.sensitivity": "Sensitivity",
}
"""The module of each public name; the imports above tell type checkers the same."""
_HOME = {name: f"goodfence.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_HOME, "__version__", "papers"])


def __getattr__(name: str) -> Any:
    if name == "papers":
        return import_module("goodfence.papers")
    if name not in _HOME:
        raise AttributeError(f"module 'goodfence' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
