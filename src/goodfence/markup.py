"""How results leave goodfence: a small table of plain HTML for notebooks, every cell escaped, and data frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Literal, TypeAlias

from goodfence.errors import MissingExtra, require

Backend: TypeAlias = Literal["pandas", "polars", "pyarrow"]


def data_frame(rows: Sequence[Mapping[str, Any]], backend: Backend) -> Any:
    """Return rows as a data frame of this library; what is no number and no text is shown by its `repr`."""
    import narwhals.stable.v1 as nw
    import pyarrow as pa

    require(backend in ("pandas", "polars", "pyarrow"), "backend", "pandas, polars or pyarrow", backend)
    plain = (str, bool, int, float, type(None))
    shown = [{name: one if isinstance(one, plain) else repr(one) for name, one in row.items()} for row in rows]
    frame = nw.from_native(pa.Table.from_pylist(shown), eager_only=True)
    try:
        return {"pandas": frame.to_pandas, "polars": frame.to_polars, "pyarrow": frame.to_arrow}[backend]()
    except ImportError:
        raise MissingExtra(f"{backend} must be installed for its data frames; pip install {backend}") from None


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> str:
    """Return a table; what is in it cannot be markup."""
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{caption}<thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"
