"""`goodfence explain METHOD|TERM|CODE`: what a recommender does, what a word or an error means, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.cli.command import command
from goodfence.cli.options import Output
from goodfence.errors import SettingError, did_you_mean

if TYPE_CHECKING:
    from goodfence.privacy.guarantee import Guarantee

_SHOWN = {
    "mechanisms": ("Does", "Leaks", "Guarantee", "When", "Settings", "Python"),
    "terms": ("Means", "Do"),
    "errors": ("Means", "Do", "Exit"),
}
"""The parts of each kind of explanation, as they are labelled."""


_TOPIC = typer.Argument(
    metavar="METHOD|TERM|CODE",
    help="A recommender, as in ppns, a term, as in epsilon, or the code of an error, as in GF203.",
    rich_help_panel="Topic",
)


@command("Explain a recommender, a term or an error.")
def explain_command(output: Output, about: Annotated[str | None, _TOPIC] = None) -> None:
    """Explain a recommender, a term or the code of an error; without one, list them all."""
    texts = {kind: explanations(kind) for kind in _SHOWN}
    if about is None or not any(_key(kind, about) in texts[kind] for kind in texts):
        texts["mechanisms"] |= _unwritten(texts["mechanisms"])
    titles = {name: text["title"] for listed in texts.values() for name, text in listed.items()}
    if about is None:
        output.tell(titles, lambda: _print_list(titles))
        return
    for kind, listed in texts.items():
        name = _key(kind, about)
        if name in listed:
            _tell(kind, name, listed[name], output)
            return
    near = did_you_mean(about, [one.casefold() for one in titles])
    raise SettingError(f"about must be a recommender, a term or an error code, got {about!r}{near}")


def explanations(kind: str) -> dict[str, Any]:
    """Return the texts about `errors`, `mechanisms` or `terms`, by code or name."""
    import tomllib
    from importlib import resources

    file = resources.files("goodfence.cli") / "explanations" / f"{kind}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def guaranteed(configuration: str) -> Guarantee:
    """Return the guarantee of a recommender such as "ppns k=50 beta=7"."""
    from goodfence.models.method import parsed

    return parsed(configuration).guarantee


def _key(kind: str, about: str) -> str:
    return about.upper() if kind == "errors" else about.casefold().replace("_", "-")


def _unwritten(written: dict[str, Any]) -> dict[str, Any]:
    """Explain every recommender without a written text by the docstring and the settings of its class."""
    import inspect

    from goodfence.registry import named

    found = {}
    for name, kind in named().items():
        if name in written:
            continue
        known = inspect.signature(kind).parameters
        required = [key for key, one in known.items() if one.default is one.empty]
        optional = [f"{key} ({one.default})" for key, one in known.items() if key not in required]
        found[name] = {
            "title": kind.label,
            "does": " ".join((inspect.getdoc(kind) or kind.label).partition("\n\n")[0].split()),
            "settings": [*(f"{key} (required)" for key in required), *optional],
            # a value that most settings allow; k has a default of its own
            "configuration": " ".join([name, *(f"{key}=1" for key in required if key != "k")]),
        }
    return found


def _print_list(titles: dict[str, str]) -> None:
    width = max(map(len, titles))
    for name, title in titles.items():
        typer.echo(f"  {typer.style(name.ljust(width), bold=True)}  {title}")


def _tell(kind: str, name: str, text: dict[str, Any], output: Output) -> None:
    """Print an explanation; a list in it has one line for each of its parts."""
    if kind == "mechanisms":
        text = {**text, "guarantee": guaranteed(text["configuration"])}
    lines = [(name, text["title"])]
    for label in _SHOWN[kind]:
        value = text.get(label.casefold(), [])
        parts = value if isinstance(value, list) else [value]
        shown = "Exit code" if label == "Exit" else label
        lines += [("" if at else shown, str(part)) for at, part in enumerate(parts)]
    output.tell({"code" if kind == "errors" else "name": name, **text}, lines)
