"""Options that many commands share, as values: a frozen dataclass of options is one parameter of a command.

Each command states the groups it takes; the parser sees their fields one by one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

from goodfence.cli.failures import failing_plainly


def command(body: Callable[..., None]) -> Callable[..., None]:
    """Return `body` with every group among its parameters spread into options, failing plainly.

    One of the groups has the field `json`, which also says how an error is printed.
    """
    groups = get_type_hints(body, include_extras=True)
    groups.pop("return", None)

    def run(**given: Any) -> None:
        with failing_plainly(as_json=given["json"]):
            body(**{name: _gathered(kind, name, given) for name, kind in groups.items()})

    parameters = [one for name, kind in groups.items() for one in _spread(kind, name, body)]
    # Arguments by position come first, as the parser wants what has no default before what has one.
    parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)
    run.__name__, run.__doc__ = body.__name__, body.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # any callable may have one
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _spread(kind: Any, name: str, body: Callable[..., None]) -> Iterator[inspect.Parameter]:
    """Yield the parameters that stand for one parameter of the command: the fields of a group, or itself."""
    if not is_dataclass(kind):
        default = inspect.signature(body).parameters[name].default
        yield _parameter(name, default, kind)
        return
    hints = get_type_hints(kind, include_extras=True)
    for one in fields(kind):
        default = inspect.Parameter.empty if one.default is MISSING else one.default
        yield _parameter(one.name, default, hints[one.name])


def _parameter(name: str, default: Any, kind: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _gathered(kind: Any, name: str, given: dict[str, Any]) -> Any:
    """Return the group made of its fields, or the plain option itself."""
    if not is_dataclass(kind):
        return given[name]
    group: Any = kind
    return group(**{one.name: given[one.name] for one in fields(kind)})
