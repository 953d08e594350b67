"""The paper's reproduction and the published systems it names: `gf.papers.reproduce`, `gf.papers.BlurMe` and others.

The rest of goodfence never imports this package; the registry finds its classes by name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goodfence.papers.algorithm_1 import algorithm_1 as algorithm_1
    from goodfence.papers.mcsherry_mironov import McSherryMironov as McSherryMironov
    from goodfence.papers.pair_attack import PairAttack as PairAttack
    from goodfence.papers.protocol import paper_protocol as paper_protocol
    from goodfence.papers.published.blurme import BlurMe as BlurMe
    from goodfence.papers.published.dp_als import DPALS as DPALS
    from goodfence.papers.published.ind_knn import IndKNN as IndKNN
    from goodfence.papers.published.item_swap import ItemSwap as ItemSwap
    from goodfence.papers.published.matrix_factorisation import (
        MatrixFactorisation as MatrixFactorisation,
    )
    from goodfence.papers.published.mcsherry_mironov_knn import (
        McSherryMironovKNN as McSherryMironovKNN,
    )
    from goodfence.papers.published.nends import NeNDS as NeNDS
    from goodfence.papers.published.noisy_answers import NoisyAnswers as NoisyAnswers
    from goodfence.papers.published.perturbed import Perturbed as Perturbed
    from goodfence.papers.published.randomised_perturbation import (
        RandomisedPerturbation as RandomisedPerturbation,
    )
    from goodfence.papers.published.randomised_response import LocalLaplace as LocalLaplace
    from goodfence.papers.published.randomised_response import (
        RandomisedResponse as RandomisedResponse,
    )
    from goodfence.papers.published.reuse_knn import ReuseKNN as ReuseKNN
    from goodfence.papers.published.slope_one import SlopeOne as SlopeOne
    from goodfence.papers.published.threshold_neighbours import (
        ThresholdNeighbours as ThresholdNeighbours,
    )
    from goodfence.papers.reproduction.figures import reproduce as reproduce
    from goodfence.papers.reproduction.figures import reproduce_all as reproduce_all

_NAMES = {
    "algorithm_1": "algorithm_1",
    "mcsherry_mironov": "McSherryMironov",
    "pair_attack": "PairAttack",
    "protocol": "paper_protocol",
    "published.blurme": "BlurMe",
    "published.dp_als": "DPALS",
    "published.ind_knn": "IndKNN",
    "published.item_swap": "ItemSwap",
    "published.matrix_factorisation": "MatrixFactorisation",
    "published.mcsherry_mironov_knn": "McSherryMironovKNN",
    "published.nends": "NeNDS",
    "published.noisy_answers": "NoisyAnswers",
    "published.perturbed": "Perturbed",
    "published.randomised_perturbation": "RandomisedPerturbation",
    "published.randomised_response": "LocalLaplace RandomisedResponse",
    "published.reuse_knn": "ReuseKNN",
    "published.slope_one": "SlopeOne",
    "published.threshold_neighbours": "ThresholdNeighbours",
    "reproduction.figures": "reproduce reproduce_all",
}
_HOME = {
    name: f"goodfence.papers.{home}" for home, names in _NAMES.items() for name in names.split()
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'goodfence.papers' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
