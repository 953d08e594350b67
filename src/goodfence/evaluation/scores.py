"""Scores of predictions and of recommended lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """How far predictions are from ratings, over the rated cells only, pooled [MAE].

    Examples
    --------
    >>> Scores.of(np.array([3.0, np.nan, 5.0]), np.array([4.0, 2.0, 5.0]))
    Scores(mae=0.5, rmse=0.7071, coverage=0.6667, n=3)
    """

    mae: float
    """Mean absolute error over the cells that got a prediction; NaN if none did."""
    rmse: float
    """Root of the mean squared error over the same cells."""
    coverage: float
    """The share of the cells that got a prediction."""
    n: int
    """The number of cells."""
    top: int | None = None
    """The length of the recommended lists that `ndcg` and `recall` speak of."""
    ndcg: float | None = None
    """How high the held-out items stand in the recommended lists, 1 for first of all; mean over users."""
    recall: float | None = None
    """The share of a user's held-out items that are in her recommended list; mean over users."""

    @classmethod
    def of(
        cls,
        predictions: Floats,
        ratings: Floats,
        *,
        top: int | None = None,
        ndcg: float | None = None,
        recall: float | None = None,
    ) -> Scores:
        """Return the scores of predictions against the ratings they stand for."""
        made = ~np.isnan(predictions)
        errors = np.abs(predictions[made] - ratings[made])
        n_made = int(made.sum())
        return cls(
            mae=float(errors.mean()) if n_made else float(np.nan),
            rmse=float(np.sqrt((errors**2).mean())) if n_made else float(np.nan),
            coverage=n_made / len(ratings) if len(ratings) else float(np.nan),
            n=len(ratings),
            top=top,
            ndcg=ndcg,
            recall=recall,
        )

    def __repr__(self) -> str:
        text = f"Scores(mae={self.mae:.4g}, rmse={self.rmse:.4g}, coverage={self.coverage:.4g}, n={self.n}"
        if self.top is not None:
            text += f", ndcg@{self.top}={self.ndcg:.4g}, recall@{self.top}={self.recall:.4g}"
        return text + ")"
