"""`goodfence serve FOLDER`: a recommender service with a web page; `goodfence promise check URL` verifies one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated, Any

import typer

from goodfence.cli.command import argument, command, command_group, flag, panel, parse_scale
from goodfence.cli.options import Output
from goodfence.errors import MissingExtra, require

_NEEDED = ("fastapi", "uvicorn", "msgspec", "prometheus_client")


@panel("Service")
class Served:
    """What is served, where."""

    folder: Path = argument("FOLDER", "Folder of data, ledger, keys and models; created if missing.")
    port: int = flag("N", "Port.", default=8000)
    host: str = flag("ADDRESS", "Address to listen at.", default="127.0.0.1")
    demo: bool = flag(None, "Fill a new folder with the bundled films, and train.", "--demo", default=False)
    self_service: bool = flag(None, "Let anybody open an account.", "--self-service", default=False)
    compat: str | None = flag("gorse", "Also answer the paths of another recommender.")


@panel("Model and ledger")
class Learning:
    """What is learnt in a new folder, and which ledger counts."""

    method: str | None = flag("'NAME KEY=VALUE ...'", "As in 'private-cf epsilon=1'.", shown="private-cf epsilon=1")
    feedback: str | None = flag("explicit|implicit", "Ratings, or events (clicks).", shown="explicit")
    scale: str | None = flag("LOW HIGH [STEP]", "Range of possible ratings.", shown="1 5 1")
    cap: float | None = flag("EPSILON", "What one rating may cost for life, at delta 1e-5.", shown="the method's")
    ledger: str | None = flag("FILE|URL", "The privacy ledger.", shown="in FOLDER")
    anchor: Path | None = flag("FILE", "Anchor of the ledger, best on another disk.", shown="in FOLDER")
    data: str | None = flag("FILE|URL", "The database.", shown="in FOLDER")
    allow_unproved: bool = flag(
        None, "Also serve models without a proved guarantee.", "--allow-unproved", default=False
    )


@command("Serve recommendations, with a web page.")
def serve_command(served: Served, learning: Learning, output: Output) -> None:
    """Serve recommendations from a released model: users, updates, audits and pages; the first start prints a key."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtra('the service needs the extra "serve": pip install "goodfence[serve]"')
    output.say("starting")
    from goodfence.service.running import Listening, serve_until_stopped
    from goodfence.service.state import Service

    require(served.compat in (None, "gorse"), "compat", "gorse", served.compat)
    service = Service(served.folder, **_told(served, learning))
    serve_until_stopped(service, Listening(host=served.host, port=served.port, demo=served.demo), _announced(output))


def _told(served: Served, learning: Learning) -> dict[str, Any]:
    from goodfence.service.running import DEMO, settings_of_service
    from goodfence.service.state import Serving

    given = {name: getattr(learning, name) for name in ("method", "feedback", "cap")}
    given["scale"] = parse_scale(learning.scale)
    settings = settings_of_service(
        {**(DEMO if served.demo else {}), **{k: v for k, v in given.items() if v is not None}}
    )
    serving = Serving(
        allow_unproved=learning.allow_unproved,
        self_service=served.self_service or served.demo,
        compat=served.compat,
        anchor=learning.anchor,
        ledger=learning.ledger,
        data=learning.data,
    )
    return {"settings": settings, "serving": serving}


def _announced(output: Output) -> Any:
    def announce(address: str, key: str | None, code: str | None) -> None:
        if key is not None:
            typer.echo(f"  Operator key  {key}\n                shown once: keep it")
        if code is not None:
            typer.echo(f"  Open          {address}/enter?code={code}\n                works once")
        output.say(f"serving {address}; stop with Ctrl-C")

    return announce


_ADDRESS = typer.Argument(metavar="URL", help="Address of the service.", rich_help_panel="Service")
_MEMORY = typer.Option(
    "--remember", metavar="FILE", rich_help_panel="Service", help="Heads seen before. [default: in the cache folder]"
)


@command("Verify the certificate of a service.", name="check")
def check_promise_command(
    url: Annotated[str, _ADDRESS], output: Output, remember: Annotated[Path | None, _MEMORY] = None
) -> None:
    """Verify signature, ledger and caps, and that nothing was put back since the last check; exit 1 if not."""
    from goodfence.data.catalogue import cache_folder
    from goodfence.service.promises import check_promise

    found = check_promise(url.rstrip("/"), remember or cache_folder() / "promises.json")
    lines = [("Promise", f"{found.sentence}."), ("Spent", f"at most epsilon {found.spent:.4g} by any one account.")]
    told = {"sentence": found.sentence, "spent_epsilon": found.spent, "certificate": found.told}
    output.tell(told, lines)


promise = command_group("promise", "Check what a service promises.", check_promise_command)
