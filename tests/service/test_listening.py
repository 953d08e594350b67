"""An address that is taken is refused before anything is made that is shown once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from goodfence.errors import SettingError
from goodfence.service.running import Listening, serve_until_stopped
from goodfence.service.state import Service


@pytest.mark.parametrize(("port", "why"), [(None, "in use"), (99_999, "up to 65535")])
def test_no_key_is_made_for_an_address_that_cannot_be_used(port: int | None, why: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listening = Listening(port=port or taken.getsockname()[1], demo=True)
        with pytest.raises(SettingError, match=why):
            serve_until_stopped(Service(tmp_path), listening, lambda *_: pytest.fail("it serves"))
    service = Service(tmp_path)
    assert not len(service.keys)
    assert not service.records.item_rows
    service.close()
