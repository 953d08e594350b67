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
from goodfence.evaluation import tune as tune
from goodfence.ledger.ledger import Ledger as Ledger
from goodfence.models.events import EASE as EASE
from goodfence.models.events import Popularity as Popularity
from goodfence.models.neighbour_cf import NeighbourCF as NeighbourCF
from goodfence.models.persistence import load_model as load_model
from goodfence.models.private.cf import PrivateCF as PrivateCF
from goodfence.models.private.cf import PrivateMeans as PrivateMeans
from goodfence.models.private.top_n import PrivateTopN as PrivateTopN
from goodfence.neighbours.candidate_lists import candidate_lists as candidate_lists
from goodfence.neighbours.similarity import Similarity as Similarity
from goodfence.privacy.guarantee import Guarantee as Guarantee
from goodfence.privacy.updates import Lasting as Lasting
from goodfence.report.pages import audit_page as audit_page
from goodfence.selection.inclusion import alpha as alpha
from goodfence.selection.inclusion import inclusion_probabilities as inclusion_probabilities
from goodfence.selection.knn import KNN as KNN
from goodfence.selection.npns import NPNS as NPNS
from goodfence.selection.pncf import PNCF as PNCF
from goodfence.selection.ppns import PPNS as PPNS
from goodfence.selection.sensitivity import Sensitivity as Sensitivity

__version__: str

__all__: list[str]
