"""Promises of SECURITY.md that no other test covers, and the existence of the tests it names."""
import re
from pathlib import Path

import pytest

from f1_pipelines.cli.main import cli
from f1_pipelines.serve.routes import operations
from f1_pipelines.serve.routes.operations import KeyRefused, Operations
from f1_pipelines.serve.settings import ServeSettings

ROOT = Path(__file__).parents[1]


def test_every_named_test_exists():
    paths = re.findall(r"`(tests/[^`]+)`", (ROOT / "SECURITY.md").read_text())
    assert len(paths) >= 10
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_servers_listen_on_the_loopback_address_by_default():
    host = next(option for option in cli.commands["serve"].params if option.name == "host")
    assert host.default == "127.0.0.1"
    assert "dagster dev -h 127.0.0.1 " in (ROOT / "Makefile").read_text()


def test_the_key_is_compared_in_constant_time(monkeypatch):
    compared = []

    def compare(given: bytes, key: bytes) -> bool:
        compared.append((given, key))
        return given == key

    monkeypatch.setattr(operations.hmac, "compare_digest", compare)
    starts = Operations("secret", "http://127.0.0.1:1")
    starts.check("secret")
    for given in ("", "secre", None):
        with pytest.raises(KeyRefused):
            starts.check(given)
    assert compared == [(b"secret", b"secret"), (b"", b"secret"), (b"secre", b"secret"), (b"", b"secret")]


def test_the_key_is_not_shown_with_the_settings():
    assert "secret" not in repr(ServeSettings(api_key="secret", _env_file=None))
