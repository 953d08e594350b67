"""From a template and its values to a page: one file that asks nobody for anything."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import goodfence
from goodfence.data.whole import written_whole
from goodfence.errors import FileProblem
from goodfence.report.enclosed import as_text
from goodfence.report.wording import dashed

_TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, values: Mapping[str, Any], enclosed: Mapping[str, Any]) -> str:
    """Return a page, with `enclosed` inside it as JSON."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["dashed"] = dashed
    text = as_text(enclosed)
    return environment.get_template(template).render(
        **values,
        version=goodfence.__version__,
        json_text=text,
        json_link=b64encode(text.encode()).decode(),
    )


def write_page(html: str, path: Path) -> None:
    """Write a page whole or not at all."""
    try:
        with written_whole(path) as file:
            file.write(html.encode())
    except OSError:
        raise FileProblem("path must be a file that can be written") from None
