"""Ratings of users and items whose ids nobody could overlook on a page."""

from __future__ import annotations

import numpy as np
from scipy import sparse

import goodfence as gf


def make_ratings(n_users: int = 160, n_items: int = 50, *, declared: bool = True) -> gf.Ratings:
    """Return ratings of users from hardly active to very, at least twelve each."""
    rng = np.random.default_rng(7)
    rated = rng.random((n_users, n_items)) < np.linspace(0.1, 0.9, n_users)[:, np.newaxis]
    rated[:, :12] = True
    given = rng.integers(1, 6, size=(n_users, n_items)).astype(np.float64)
    users = [f"secret-person-{number}" for number in range(n_users)]
    items = [f"secret-item-{number}" for number in range(n_items)]
    scale = (1, 5) if declared else None
    return gf.Ratings(sparse.csr_array(rated * given), users, items, scale=scale)
