"""Everything on an Apache Spark cluster, with the names and the results of the local engine."""

from goodfence.engines.spark.candidates import candidate_lists
from goodfence.engines.spark.draws import choose_neighbours
from goodfence.engines.spark.predictions import predict
from goodfence.engines.spark.recommendations import recommend
from goodfence.engines.spark.running import Running
from goodfence.engines.spark.session import start

__all__ = ["Running", "candidate_lists", "choose_neighbours", "predict", "recommend", "start"]
