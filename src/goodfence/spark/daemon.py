"""The process from which Spark forks its Python workers, with everything loaded that a task needs.

A session starts it once; without it every worker, and each one that replaces a worker whose task failed, would load
numba and arrow anew, which takes seconds.
"""

from __future__ import annotations

if __name__ == "__main__":
    import gc

    from pyspark.daemon import manager

    import goodfence.spark

    assert goodfence.spark.__all__  # noqa: S101 - loaded
    gc.freeze()
    manager()
