"""`goodfence promise check URL`: verify what a service promises, and remember it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goodfence.cli.command import Command, command, command_group
from goodfence.cli.options import Output

_URL = typer.Argument(metavar="URL", help="Address of the service.", rich_help_panel="Service")
_MEMORY = typer.Option(
    "--remember", metavar="FILE", rich_help_panel="Service", help="Heads seen before. [default: in the cache folder]"
)


@command("Verify the certificate of a service.")
def check_promise_command(
    url: Annotated[str, _URL], output: Output, remember: Annotated[Path | None, _MEMORY] = None
) -> None:
    """Verify signature, ledger and caps, and that nothing was put back since the last check; exit 1 if not."""
    from goodfence.data.catalogue import cache_folder
    from goodfence.service.promises import check_promise

    found = check_promise(url.rstrip("/"), remember or cache_folder() / "promises.json")
    lines = [("Promise", f"{found.sentence}."), ("Spent", f"at most epsilon {found.spent:.4g} by any one account.")]
    told = {"sentence": found.sentence, "spent_epsilon": found.spent, "certificate": found.told}
    output.tell(told, lines)


app = command_group("promise", "Check what a service promises.")
app.command("check", cls=Command, short_help="Verify the certificate of a service.")(check_promise_command)
