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
    from goodfence.attack.list_attack import ListAttack as ListAttack
    from goodfence.attack.list_report import ListAttackReport as ListAttackReport
    from goodfence.attack.membership import MembershipAttack as MembershipAttack
    from goodfence.attack.pair_attack import PairAttack as PairAttack
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
    from goodfence.models.algorithm_1 import algorithm_1 as algorithm_1
    from goodfence.models.ease import EASE as EASE
    from goodfence.models.neighbour_cf import NeighbourCF as NeighbourCF
    from goodfence.models.persistence import load_model as load_model
    from goodfence.models.popularity import Popularity as Popularity
    from goodfence.models.private.cf import PrivateCF as PrivateCF
    from goodfence.models.private.mcsherry_mironov import McSherryMironov as McSherryMironov
    from goodfence.models.private.means import PrivateMeans as PrivateMeans
    from goodfence.models.private.top_n import PrivateTopN as PrivateTopN
    from goodfence.models.published.blurme import BlurMe as BlurMe
    from goodfence.models.published.dp_als import DPALS as DPALS
    from goodfence.models.published.ind_knn import IndKNN as IndKNN
    from goodfence.models.published.item_swap import ItemSwap as ItemSwap
    from goodfence.models.published.matrix_factorisation import (
        MatrixFactorisation as MatrixFactorisation,
    )
    from goodfence.models.published.mcsherry_mironov_knn import (
        McSherryMironovKNN as McSherryMironovKNN,
    )
    from goodfence.models.published.nends import NeNDS as NeNDS
    from goodfence.models.published.noisy_answers import NoisyAnswers as NoisyAnswers
    from goodfence.models.published.perturbed import Perturbed as Perturbed
    from goodfence.models.published.randomised_perturbation import (
        RandomisedPerturbation as RandomisedPerturbation,
    )
    from goodfence.models.published.randomised_response import LocalLaplace as LocalLaplace
    from goodfence.models.published.randomised_response import (
        RandomisedResponse as RandomisedResponse,
    )
    from goodfence.models.published.reuse_knn import ReuseKNN as ReuseKNN
    from goodfence.models.published.slope_one import SlopeOne as SlopeOne
    from goodfence.models.published.threshold_neighbours import (
        ThresholdNeighbours as ThresholdNeighbours,
    )
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

__version__ = "0.2.0"

_NAMES = {
    "adapters.black_box": "BlackBox",
    "adapters.http": "Endpoint",
    "attack.exposure": "exposure rating_exposure",
    "attack.knn_attack": "AdaptiveAttack CoverAttack KNNAttack",
    "attack.list_attack": "ListAttack",
    "attack.list_report": "ListAttackReport",
    "attack.membership": "MembershipAttack",
    "attack.pair_attack": "PairAttack",
    "attack.related_items": "RelatedItemsAttack",
    "attack.report": "AttackReport",
    "audit.audit": "audit",
    "audit.frontier": "frontier",
    "audit.leak_limit": "assert_leak_below",
    "audit.survey": "audit_page",
    "data.load": "load",
    "data.ratings": "Ratings",
    "data.scale": "Scale",
    "data.splits": "folds holdout sample_targets",
    "data.synthetic": "synthetic",
    "errors": "DataError GoodfenceError SettingError",
    "evaluation": "Scores evaluate paper_protocol",
    "models.algorithm_1": "algorithm_1",
    "models.ease": "EASE",
    "models.neighbour_cf": "NeighbourCF",
    "models.persistence": "load_model",
    "models.popularity": "Popularity",
    "models.private.cf": "PrivateCF",
    "models.private.mcsherry_mironov": "McSherryMironov",
    "models.private.means": "PrivateMeans",
    "models.private.top_n": "PrivateTopN",
    "models.published.blurme": "BlurMe",
    "models.published.dp_als": "DPALS",
    "models.published.ind_knn": "IndKNN",
    "models.published.mcsherry_mironov_knn": "McSherryMironovKNN",
    "models.published.item_swap": "ItemSwap",
    "models.published.matrix_factorisation": "MatrixFactorisation",
    "models.published.nends": "NeNDS",
    "models.published.noisy_answers": "NoisyAnswers",
    "models.published.perturbed": "Perturbed",
    "models.published.randomised_perturbation": "RandomisedPerturbation",
    "models.published.randomised_response": "LocalLaplace RandomisedResponse",
    "models.published.reuse_knn": "ReuseKNN",
    "models.published.slope_one": "SlopeOne",
    "models.published.threshold_neighbours": "ThresholdNeighbours",
    "neighbours.candidate_lists": "candidate_list candidate_lists",
    "neighbours.similarity": "Similarity",
    "privacy.guarantee": "Guarantee",
    "reproduction.figures": "reproduce reproduce_all",
    "selection.inclusion": "alpha inclusion_probabilities",
    "selection.knn": "KNN",
    "selection.npns": "NPNS",
    "selection.pncf": "PNCF",
    "selection.ppns": "PPNS",
    "selection.sensitivity": "Sensitivity",
}
"""Where each public name is; the imports above say the same to type checkers."""
_HOME = {name: f"goodfence.{home}" for home, names in _NAMES.items() for name in names.split()}

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
