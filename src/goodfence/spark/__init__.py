"""Everything on an Apache Spark cluster, with the names and the results of the local engine."""

from goodfence.spark.lasting import spark_fit as fit
from goodfence.spark.lasting import spark_forget as forget
from goodfence.spark.lasting import spark_update as update
from goodfence.spark.lasting import spark_withdraw as withdraw
from goodfence.spark.neighbours import choose_neighbours
from goodfence.spark.neighbours import spark_candidate_lists as candidate_lists
from goodfence.spark.predict import predict, recommend
from goodfence.spark.session import SparkConfig, start

__all__ = [
    "SparkConfig",
    "candidate_lists",
    "choose_neighbours",
    "fit",
    "forget",
    "predict",
    "recommend",
    "start",
    "update",
    "withdraw",
]
