"""goodfence: neighbourhood-based recommendation that shows what it leaks, and can stop it.

    import goodfence as gf

Everything public is a name of this module. Names are looked up when they are first used, so that importing
goodfence costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goodfence.adapters.black_box import BlackBox as BlackBox
    from goodfence.adapters.endpoint import Endpoint as Endpoint
    from goodfence.attack.adaptive import AdaptiveAttack as AdaptiveAttack
    from goodfence.attack.exposure import exposure as exposure
    from goodfence.attack.knn_attack import CoverAttack as CoverAttack
    from goodfence.attack.knn_attack import KNNAttack as KNNAttack
    from goodfence.attack.report import AttackReport as AttackReport
    from goodfence.auditing.audit import audit as audit
    from goodfence.auditing.frontier import frontier as frontier
    from goodfence.auditing.leak_limit import assert_leak_below as assert_leak_below
    from goodfence.data.catalogue import load as load
    from goodfence.data.ratings import Ratings as Ratings
    from goodfence.data.scale import Scale as Scale
    from goodfence.data.splits import folds as folds
    from goodfence.data.splits import holdout as holdout
    from goodfence.data.splits import sample_targets as sample_targets
    from goodfence.data.synthetic import synthetic as synthetic
    from goodfence.engines.local.candidates import candidate_list as candidate_list
    from goodfence.engines.local.candidates import candidate_lists as candidate_lists
    from goodfence.errors import DataError as DataError
    from goodfence.errors import GoodfenceError as GoodfenceError
    from goodfence.errors import SettingError as SettingError
    from goodfence.evaluation.holdout_scores import evaluate as evaluate
    from goodfence.evaluation.paper import paper_protocol as paper_protocol
    from goodfence.evaluation.scores import Scores as Scores
    from goodfence.experiments.reproduce import reproduce as reproduce
    from goodfence.experiments.reproduce import reproduce_all as reproduce_all
    from goodfence.models.loading import load_model as load_model
    from goodfence.models.mcsherry_mironov import McSherryMironov as McSherryMironov
    from goodfence.models.neighbour_cf import NeighbourCF as NeighbourCF
    from goodfence.models.private_cf import PrivateCF as PrivateCF
    from goodfence.models.private_means import PrivateMeans as PrivateMeans
    from goodfence.privacy.guarantee import Guarantee as Guarantee
    from goodfence.report.audit_page import audit_page as audit_page
    from goodfence.selection.inclusion import alpha as alpha
    from goodfence.selection.inclusion import inclusion_probabilities as inclusion_probabilities
    from goodfence.selection.knn import KNN as KNN
    from goodfence.selection.npns import NPNS as NPNS
    from goodfence.selection.pncf import PNCF as PNCF
    from goodfence.selection.ppns import PPNS as PPNS
    from goodfence.selection.sensitivity import Sensitivity as Sensitivity
    from goodfence.similarity.measure import Similarity as Similarity

__version__ = "0.1.0"

_HOME = {
    "AdaptiveAttack": "goodfence.attack.adaptive",
    "AttackReport": "goodfence.attack.report",
    "BlackBox": "goodfence.adapters.black_box",
    "CoverAttack": "goodfence.attack.knn_attack",
    "DataError": "goodfence.errors",
    "Endpoint": "goodfence.adapters.endpoint",
    "GoodfenceError": "goodfence.errors",
    "Guarantee": "goodfence.privacy.guarantee",
    "KNN": "goodfence.selection.knn",
    "KNNAttack": "goodfence.attack.knn_attack",
    "McSherryMironov": "goodfence.models.mcsherry_mironov",
    "NPNS": "goodfence.selection.npns",
    "NeighbourCF": "goodfence.models.neighbour_cf",
    "PNCF": "goodfence.selection.pncf",
    "PPNS": "goodfence.selection.ppns",
    "PrivateCF": "goodfence.models.private_cf",
    "PrivateMeans": "goodfence.models.private_means",
    "Ratings": "goodfence.data.ratings",
    "Scale": "goodfence.data.scale",
    "Scores": "goodfence.evaluation.scores",
    "Sensitivity": "goodfence.selection.sensitivity",
    "SettingError": "goodfence.errors",
    "Similarity": "goodfence.similarity.measure",
    "alpha": "goodfence.selection.inclusion",
    "assert_leak_below": "goodfence.auditing.leak_limit",
    "audit": "goodfence.auditing.audit",
    "audit_page": "goodfence.report.audit_page",
    "candidate_list": "goodfence.engines.local.candidates",
    "candidate_lists": "goodfence.engines.local.candidates",
    "evaluate": "goodfence.evaluation.holdout_scores",
    "exposure": "goodfence.attack.exposure",
    "folds": "goodfence.data.splits",
    "frontier": "goodfence.auditing.frontier",
    "holdout": "goodfence.data.splits",
    "inclusion_probabilities": "goodfence.selection.inclusion",
    "load": "goodfence.data.catalogue",
    "load_model": "goodfence.models.loading",
    "paper_protocol": "goodfence.evaluation.paper",
    "reproduce": "goodfence.experiments.reproduce",
    "reproduce_all": "goodfence.experiments.reproduce",
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
