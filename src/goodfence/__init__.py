"""goodfence: neighbourhood-based recommendation that shows what it leaks, and can stop it.

    import goodfence as gf

Everything public is a name of this module. Names are looked up when they are first used, so that importing
goodfence costs almost nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goodfence.adapters.black_box import BlackBox as BlackBox
    from goodfence.adapters.http import Endpoint as Endpoint
    from goodfence.attack.exposure import exposure as exposure
    from goodfence.attack.exposure import rating_exposure as rating_exposure
    from goodfence.attack.knn_attack import AdaptiveAttack as AdaptiveAttack
    from goodfence.attack.knn_attack import CoverAttack as CoverAttack
    from goodfence.attack.knn_attack import KNNAttack as KNNAttack
    from goodfence.attack.membership import MembershipAttack as MembershipAttack
    from goodfence.attack.related_items import RelatedItemsAttack as RelatedItemsAttack
    from goodfence.attack.report import AttackReport as AttackReport
    from goodfence.audit.audit import audit as audit
    from goodfence.audit.frontier import frontier as frontier
    from goodfence.audit.leak_limit import assert_leak_below as assert_leak_below
    from goodfence.audit.survey import audit_page as audit_page
    from goodfence.data.load import load as load
    from goodfence.data.ratings import Ratings as Ratings
    from goodfence.data.scale import Scale as Scale
    from goodfence.data.splits import folds as folds
    from goodfence.data.splits import holdout as holdout
    from goodfence.data.splits import sample_targets as sample_targets
    from goodfence.data.synthetic import synthetic as synthetic
    from goodfence.errors import DataError as DataError
    from goodfence.errors import GoodfenceError as GoodfenceError
    from goodfence.errors import SettingError as SettingError
    from goodfence.evaluation import Scores as Scores
    from goodfence.evaluation import evaluate as evaluate
    from goodfence.evaluation import paper_protocol as paper_protocol
    from goodfence.models.neighbour_cf import NeighbourCF as NeighbourCF
    from goodfence.models.persistence import load_model as load_model
    from goodfence.models.private.cf import PrivateCF as PrivateCF
    from goodfence.models.private.mcsherry_mironov import McSherryMironov as McSherryMironov
    from goodfence.models.private.means import PrivateMeans as PrivateMeans
    from goodfence.neighbours.candidate_lists import candidate_list as candidate_list
    from goodfence.neighbours.candidate_lists import candidate_lists as candidate_lists
    from goodfence.neighbours.similarity import Similarity as Similarity
    from goodfence.privacy.guarantee import Guarantee as Guarantee
    from goodfence.reproduction.figures import reproduce as reproduce
    from goodfence.reproduction.figures import reproduce_all as reproduce_all
    from goodfence.selection.inclusion import alpha as alpha
    from goodfence.selection.inclusion import inclusion_probabilities as inclusion_probabilities
    from goodfence.selection.knn import KNN as KNN
    from goodfence.selection.npns import NPNS as NPNS
    from goodfence.selection.pncf import PNCF as PNCF
    from goodfence.selection.ppns import PPNS as PPNS
    from goodfence.selection.sensitivity import Sensitivity as Sensitivity

__version__ = "0.1.0"

_HOME = {
    "AdaptiveAttack": "goodfence.attack.knn_attack",
    "AttackReport": "goodfence.attack.report",
    "BlackBox": "goodfence.adapters.black_box",
    "CoverAttack": "goodfence.attack.knn_attack",
    "DataError": "goodfence.errors",
    "Endpoint": "goodfence.adapters.http",
    "GoodfenceError": "goodfence.errors",
    "Guarantee": "goodfence.privacy.guarantee",
    "KNN": "goodfence.selection.knn",
    "KNNAttack": "goodfence.attack.knn_attack",
    "McSherryMironov": "goodfence.models.private.mcsherry_mironov",
    "MembershipAttack": "goodfence.attack.membership",
    "NPNS": "goodfence.selection.npns",
    "NeighbourCF": "goodfence.models.neighbour_cf",
    "PNCF": "goodfence.selection.pncf",
    "PPNS": "goodfence.selection.ppns",
    "PrivateCF": "goodfence.models.private.cf",
    "PrivateMeans": "goodfence.models.private.means",
    "Ratings": "goodfence.data.ratings",
    "RelatedItemsAttack": "goodfence.attack.related_items",
    "Scale": "goodfence.data.scale",
    "Scores": "goodfence.evaluation",
    "Sensitivity": "goodfence.selection.sensitivity",
    "SettingError": "goodfence.errors",
    "Similarity": "goodfence.neighbours.similarity",
    "alpha": "goodfence.selection.inclusion",
    "assert_leak_below": "goodfence.audit.leak_limit",
    "audit": "goodfence.audit.audit",
    "audit_page": "goodfence.audit.survey",
    "candidate_list": "goodfence.neighbours.candidate_lists",
    "candidate_lists": "goodfence.neighbours.candidate_lists",
    "evaluate": "goodfence.evaluation",
    "exposure": "goodfence.attack.exposure",
    "folds": "goodfence.data.splits",
    "frontier": "goodfence.audit.frontier",
    "holdout": "goodfence.data.splits",
    "inclusion_probabilities": "goodfence.selection.inclusion",
    "load": "goodfence.data.load",
    "load_model": "goodfence.models.persistence",
    "paper_protocol": "goodfence.evaluation",
    "rating_exposure": "goodfence.attack.exposure",
    "reproduce": "goodfence.reproduction.figures",
    "reproduce_all": "goodfence.reproduction.figures",
    "sample_targets": "goodfence.data.splits",
    "synthetic": "goodfence.data.synthetic",
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'goodfence' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps `gf.audit` the function: importing the folder of the same name would put the folder in its place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
