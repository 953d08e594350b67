"""Chunks of ratings as the tasks of Spark cut them, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from goodfence.data.scale import Scale
from goodfence.spark.chunks import Encoder, merge_facts
from goodfence.spark.messages import ChunkFacts, Message
from tests.support.by_hand import shuffled


def encoded(table: pa.Table, n_splits: int, most: int, scale: Scale | None = None) -> list[Message]:
    """Return what the tasks of the one pass send of a table, in batches of three ratings."""
    size = -(-table.num_rows // n_splits)
    encoder = Encoder(most=most, scale=scale)
    return [
        sent
        for split in range(n_splits)
        for sent in encoder.encode(iter(table.slice(split * size, size).to_batches(3)), split)
    ]


def merged(sent: list[Message]) -> list[ChunkFacts]:
    """Return the facts of all chunks together."""
    facts = [replace(one, partition=0) for one in of_kind(sent, ChunkFacts)]
    return [one for one in shuffled(facts, merge_facts) if isinstance(one, ChunkFacts)]


def numbered(sent: list[Message]) -> list[Message]:
    """Return messages at the partitions of their chunks, as `chunks.numbered` does."""
    n_chunks = np.bincount(merged(sent)[0].chunks)
    before = np.cumsum(n_chunks) - n_chunks
    return [replace(one, partition=int(before[one.sender]) + one.partition) for one in sent]


def of_kind(sent: list[Message], kind: type[Message]) -> list[Message]:
    return [one for one in sent if isinstance(one, kind)]


def rated(users: list[Any], items: list[Any], ratings: Sequence[float | None]) -> pa.Table:
    return pa.table({"user": users, "item": items, "rating": pa.array(ratings, pa.float64())})
