"""A ledger, driven at random, always agrees with a few sums in a dict; both databases."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support.ledgers import LedgerMachine, PostgresStore, Store
from tests.support.postgres import Cluster


def test_a_ledger_in_sqlite_agrees_with_the_model() -> None:
    run_state_machine_as_test(LedgerMachine, settings=settings(max_examples=40, stateful_step_count=40, deadline=None))


def test_a_ledger_in_postgres_agrees_with_the_model(postgres: Cluster) -> None:
    @contextmanager
    def postgres_store() -> Iterator[Store]:
        store = PostgresStore(Path(tempfile.mkdtemp()), postgres.url())
        try:
            yield store
        finally:
            store.remove()

    class OnPostgres(LedgerMachine):
        stores = staticmethod(postgres_store)

    run_state_machine_as_test(OnPostgres, settings=settings(max_examples=6, stateful_step_count=30, deadline=None))
