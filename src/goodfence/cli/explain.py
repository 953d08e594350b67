"""`goodfence explain MECHANISM|TERM|CODE`: what a mechanism does, what a word or an error means, what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from goodfence.cli.command import argument, command
from goodfence.cli.options import Output
from goodfence.cli.output import print_json, print_paragraphs
from goodfence.errors import SettingError, did_you_mean

if TYPE_CHECKING:
    from goodfence.privacy.guarantee import Guarantee


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What is explained."""

    panel: ClassVar[str] = "Topic"
    about: str | None = argument(
        "MECHANISM|TERM|CODE",
        "A mechanism, as in ppns, a term, as in epsilon, or the code of an error, as in GF203.",
        default=None,
    )


@command("What a mechanism does, or what a term or an error means.")
def explain(topic: Topic, output: Output) -> None:
    """Explain a mechanism, a term, or the code of an error; list them all where none is given."""
    about = topic.about
    if about is None:
        _print_list(output)
        return
    errors, mechanisms, terms = map(explanations, ("errors", "mechanisms", "terms"))
    code, name = about.upper(), about.casefold().replace("_", "-")
    if code in errors:
        _print_error(code, errors[code], output)
    elif name in mechanisms:
        _print_mechanism(name, mechanisms[name], output)
    elif name in terms:
        _print_term(name, terms[name], output)
    else:
        near = did_you_mean(about, [one.casefold() for one in (*errors, *mechanisms, *terms)])
        raise SettingError(
            f"about must be a mechanism, a term or a code of an error, got {about!r}{near}"
        )


def explanations(kind: str) -> dict[str, Any]:
    """Return the texts about `errors`, `mechanisms` or `terms`, by code or name."""
    import tomllib
    from importlib import resources

    file = resources.files("goodfence.cli") / "explanations" / f"{kind}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


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


def _print_error(code: str, text: dict[str, Any], output: Output) -> None:
    if output.json:
        print_json({"code": code, **text})
        return
    print_paragraphs(
        [
            (code, text["title"]),
            ("Means", text["means"]),
            *(("Do" if line == 0 else "", advice) for line, advice in enumerate(text["do"])),
            ("Exit code", str(text["exit"])),
        ]
    )


def _print_term(name: str, text: dict[str, Any], output: Output) -> None:
    if output.json:
        print_json({"name": name, **text})
        return
    advice = enumerate(text["do"])
    print_paragraphs(
        [
            (name, text["title"]),
            ("Means", text["means"]),
            *(("Do" if line == 0 else "", one) for line, one in advice),
        ]
    )


def _print_mechanism(name: str, text: dict[str, Any], output: Output) -> None:
    guarantee = guaranteed(name)
    if output.json:
        print_json({"name": name, **text, "guarantee": asdict(guarantee)})
        return
    settings = enumerate(text["settings"])
    print_paragraphs(
        [
            (name, text["title"]),
            ("Does", text["does"]),
            ("Leaks", text["leaks"]),
            ("Guarantee", str(guarantee)),
            ("When", text["when"]),
            *(("Settings" if line == 0 else "", setting) for line, setting in settings),
            ("Python", text["python"]),
        ]
    )


def guaranteed(name: str) -> Guarantee:
    """Return what the mechanism guarantees with the settings of its explanation."""
    from goodfence.models.configuration import parsed

    return parsed(explanations("mechanisms")[name]["configuration"]).guarantee
