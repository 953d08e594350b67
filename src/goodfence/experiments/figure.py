"""`Figure` and `Reproduction`: tables, claims and manifests of what was run, and how they are saved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from goodfence.data.whole import written_whole
from goodfence.experiments.claims.counted import Counted
from goodfence.experiments.claims.verdict import Claim
from goodfence.experiments.definition import Definition

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True, eq=False, kw_only=True)
class Figure:
    """One figure of the paper, drawn again."""

    definition: Definition
    table: pa.Table
    """(figure, series, x, seed, metric, value): the same for the same seed, byte for byte."""
    summary: pa.Table
    """(figure, series, x, metric, value, low, high, targets): over all seeds, with 95% bands."""
    claims: tuple[Claim, ...]
    """The claims that this figure alone can judge."""
    manifest: Mapping[str, Any]
    counted: Counted

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{claim.number} {claim.verdict}" for claim in self.claims)
        return f"Figure({self.definition.id}: {self.table.num_rows:,} values; claims: {verdicts})"

    def chart(self) -> altair.VConcatChart:
        """Return the chart."""
        from goodfence.experiments.charts import figure_chart

        return figure_chart(self.definition, self.summary, self.manifest)

    def chart_spec(self) -> dict[str, Any]:
        """Return the chart as a Vega-Lite specification."""
        from goodfence.experiments.charts import chart_spec

        return chart_spec(self.definition, self.summary, self.manifest)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write tables (parquet, csv), charts (PNG, SVG, HTML), claims and manifest to `folder`."""
        from goodfence.experiments.charts import save_chart

        place = Path(folder)
        for name, table in (("table", self.table), ("summary", self.summary)):
            with written_whole(place / f"{name}.parquet") as file:
                pq.write_table(table, file, compression="zstd")
            with written_whole(place / f"{name}.csv") as file:
                pa_csv.write_csv(table, file)
        save_chart(self.chart_spec(), place)
        write_json(place / "claims.json", {"claims": [claim.as_json() for claim in self.claims]})
        write_json(place / "manifest.json", self.manifest)


@dataclass(frozen=True, eq=False, kw_only=True)
class Reproduction:
    """All figures of the paper and all its claims."""

    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    """The fourteen claims, judged by all figures together."""
    manifest: Mapping[str, Any]

    def __repr__(self) -> str:
        verdicts = [claim.verdict for claim in self.claims]
        told = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
        return f"Reproduction({len(self.figures)} figures, {len(self.claims)} claims: {told})"

    def save(self, folder: str | PathLike[str]) -> None:
        """Write every figure to a folder of its own in `folder`, and the claims beside them."""
        place = Path(folder)
        for figure in self.figures:
            figure.save(place / figure.definition.id)
        write_json(place / "claims.json", {"claims": [claim.as_json() for claim in self.claims]})
        write_json(place / "manifest.json", self.manifest)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    with written_whole(path) as file:
        file.write(f"{text}\n".encode())
