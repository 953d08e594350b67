"""`goodfence explain MECHANISM|CODE`: what a mechanism does, or what an error means and what to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goodfence.cli.grouping import command
from goodfence.cli.options import Output, Running, Settings
from goodfence.cli.printing import print_json, print_paragraphs
from goodfence.cli.recipes import PRIVATE, build
from goodfence.errors import SettingError, did_you_mean

if TYPE_CHECKING:
    from goodfence.privacy.guarantee import Guarantee

_LEAST: dict[str, dict[str, Any]] = {
    "ppns": {"beta": 7},
    **{name: {"epsilon": 1.0} for name in PRIVATE},
}


@command
def explain(
    output: Output,
    about: Annotated[
        str | None,
        typer.Argument(metavar="MECHANISM|CODE", help="ppns, say, or GF203; a list if left out."),
    ] = None,
) -> None:
    """Explain a mechanism, or the code of an error."""
    if about is None:
        _print_list(output)
        return
    errors, mechanisms = explanations("errors"), explanations("mechanisms")
    code, name = about.upper(), about.casefold().replace("_", "-")
    if code in errors:
        _print_error(code, errors[code], output)
    elif name in mechanisms:
        _print_mechanism(name, mechanisms[name], output)
    else:
        near = did_you_mean(about, {one.casefold(): one for one in (*errors, *mechanisms)})
        raise SettingError(f"there is nothing to explain of that name, got {about!r}{near}")


def explanations(kind: str) -> dict[str, Any]:
    """Return the texts about `errors` or `mechanisms`, by code or name."""
    import tomllib
    from importlib import resources

    file = resources.files("goodfence.cli") / "explanations" / f"{kind}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _print_list(output: Output) -> None:
    titles = {
        name: text["title"]
        for kind in ("mechanisms", "errors")
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
            *(("Do" if place == 0 else "", advice) for place, advice in enumerate(text["do"])),
            ("Exit code", str(text["exit"])),
        ]
    )


def _print_mechanism(name: str, text: dict[str, Any], output: Output) -> None:
    guarantee = promised(name)
    if output.json:
        print_json({"name": name, **text, "guarantee": asdict(guarantee)})
        return
    settings = enumerate(text["settings"])
    print_paragraphs(
        [
            (name, text["title"]),
            ("Does", text["does"]),
            ("Leaks", text["leaks"]),
            ("Promise", str(guarantee)),
            ("When", text["when"]),
            *(("Settings" if place == 0 else "", setting) for place, setting in settings),
            ("Python", text["python"]),
        ]
    )


def promised(name: str) -> Guarantee:
    """Return what the mechanism promises, with settings that are usual."""
    settings: dict[str, Any] = {"mechanism": name, **_LEAST.get(name, {})}
    return build(Settings(**settings), Running(quiet=True)).promised
