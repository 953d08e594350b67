"""`goodfence explain MECHANISM|TERM|CODE`: what a mechanism does, what a word or an error means, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from goodfence.cli.command import argument, command, panel
from goodfence.cli.options import Output
from goodfence.cli.output import print_json, print_paragraphs
from goodfence.errors import SettingError, did_you_mean

if TYPE_CHECKING:
    from goodfence.privacy.guarantee import Guarantee

_SHOWN = {
    "errors": {"Means": "means", "Do": "do", "Exit code": "exit"},
    "mechanisms": {
        "Does": "does",
        "Leaks": "leaks",
        "Guarantee": "guarantee",
        "When": "when",
        "Settings": "settings",
        "Python": "python",
    },
    "terms": {"Means": "means", "Do": "do"},
}
"""Of each kind of explanation, the labels and what they label."""


@panel("Topic")
class Topic:
    """What is explained."""

    about: str | None = argument(
        "MECHANISM|TERM|CODE",
        "A mechanism, as in ppns, a term, as in epsilon, or the code of an error, as in GF203.",
        default=None,
    )


@command("What a mechanism does, or what a term or an error means.")
def explain_command(topic: Topic, output: Output) -> None:
    """Explain a mechanism, a term, or the code of an error; list them all where none is given."""
    about = topic.about
    if about is None:
        _print_list(output)
        return
    names = {"errors": about.upper()}
    for kind in _SHOWN:
        name = names.get(kind, about.casefold().replace("_", "-"))
        texts = explanations(kind)
        if name in texts:
            _print(kind, name, texts[name], output)
            return
    near = did_you_mean(about, [one.casefold() for kind in _SHOWN for one in explanations(kind)])
    raise SettingError(
        f"about must be a mechanism, a term or a code of an error, got {about!r}{near}"
    )


def explanations(kind: str) -> dict[str, Any]:
    """Return the texts about `errors`, `mechanisms` or `terms`, by code or name."""
    import tomllib
    from importlib import resources

    file = resources.files("goodfence.cli") / "explanations" / f"{kind}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def guaranteed(name: str) -> Guarantee:
    """Return what the mechanism guarantees with the settings of its explanation."""
    from goodfence.models.method import parsed

    return parsed(explanations("mechanisms")[name]["configuration"]).guarantee


def _print_list(output: Output) -> None:
    titles = {
        name: text["title"]
        for kind in ("mechanisms", "terms", "errors")
        for name, text in explanations(kind).items()
    }
    if output.json:
        print_json(titles)
        return
    width = max(map(len, titles))
    for name, title in titles.items():
        typer.echo(f"  {typer.style(name.ljust(width), bold=True)}  {title}")


def _print(kind: str, name: str, text: dict[str, Any], output: Output) -> None:
    """Print an explanation; a list in it has one line for each of its parts."""
    guarantee = guaranteed(name) if kind == "mechanisms" else None
    if output.json:
        stated = {} if guarantee is None else {"guarantee": guarantee.to_dict()}
        print_json({"code" if kind == "errors" else "name": name, **text, **stated})
        return
    lines = [(name, text["title"])]
    for label, key in _SHOWN[kind].items():
        value = guarantee if key == "guarantee" else text[key]
        parts = value if isinstance(value, list) else [value]
        lines += [("" if at else label, str(part)) for at, part in enumerate(parts)]
    print_paragraphs(lines)
