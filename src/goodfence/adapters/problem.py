"""The one error of recommenders that are not ours."""

from __future__ import annotations

from goodfence.errors import GoodfenceError


class BlackBoxProblem(GoodfenceError, RuntimeError):
    """Somebody's recommender could not be reached, or did not answer as it must."""

    code = "GF501"
    exit_code = 3
