from goodfence.papers.mcsherry_mironov import McSherryMironov as McSherryMironov
from goodfence.papers.pair_attack import PairAttack as PairAttack
from goodfence.papers.protocol import algorithm_1 as algorithm_1
from goodfence.papers.protocol import paper_protocol as paper_protocol
from goodfence.papers.published.dp_als import DPALS as DPALS
from goodfence.papers.published.encrypted import MatrixFactorisation as MatrixFactorisation
from goodfence.papers.published.encrypted import ThresholdNeighbours as ThresholdNeighbours
from goodfence.papers.published.ind_knn import IndKNN as IndKNN
from goodfence.papers.published.mcsherry_mironov_knn import McSherryMironovKNN as McSherryMironovKNN
from goodfence.papers.published.noisy_answers import NoisyAnswers as NoisyAnswers
from goodfence.papers.published.perturbations import BlurMe as BlurMe
from goodfence.papers.published.perturbations import ItemSwap as ItemSwap
from goodfence.papers.published.perturbations import NeNDS as NeNDS
from goodfence.papers.published.perturbations import RandomisedPerturbation as RandomisedPerturbation
from goodfence.papers.published.perturbed import Perturbed as Perturbed
from goodfence.papers.published.randomised_response import LocalLaplace as LocalLaplace
from goodfence.papers.published.randomised_response import RandomisedResponse as RandomisedResponse
from goodfence.papers.published.reuse_knn import ReuseKNN as ReuseKNN
from goodfence.papers.published.slope_one import SlopeOne as SlopeOne
from goodfence.papers.reproduction.figures import reproduce as reproduce
from goodfence.papers.reproduction.figures import reproduce_all as reproduce_all

__all__: list[str]
