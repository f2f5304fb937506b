"""The settings of a service: names, meanings and defaults, and how they are read."""

from __future__ import annotations

import dataclasses
import ipaddress
import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accrual.core.durations import parse_duration
from accrual.core.errors import InputError, as_number, only, whole
from accrual.store.address import parse
from accrual.store.backends import backend_of

PREFIX = "ACCRUAL_"
CONFIG = PREFIX + "CONFIG"


def _setting(default: Any, help: str, least: float | None = None) -> Any:
    """Describe a setting. `least` is the smallest number allowed."""
    metadata = {"help": help, "least": least}
    if isinstance(default, tuple):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """How a service runs.

    Each setting is a line of a TOML file, an environment variable (`ACCRUAL_` and its name in capitals) and
    an option of `accrual serve`. An option overrides a variable, and a variable overrides the file.

    Examples
    --------
    >>> load(environment={"ACCRUAL_PORT": "9000"}).port
    9000
    """

    store: str = _setting("sqlite:///accrual.db", "The database: sqlite:///FILE or postgresql://...")
    host: str = _setting(
        "127.0.0.1", "The address to listen on; one that other machines can reach needs keys."
    )
    port: int = _setting(8000, "The port; 0 takes any free port.", 0)
    workers: int = _setting(1, "Processes; more than one needs PostgreSQL.", 1)
    hosts: tuple[str, ...] = _setting((), "Host names of the service, beside its address.")
    rate: float = _setting(20_000.0, "Requests a second for one key, in one process; 0: no limit.", 0)
    queue: int = _setting(
        20_000, "Decisions and pieces that may wait to be stored; more are answered 503.", 1
    )
    body: int = _setting(1_048_576, "The most bytes of a request's body.", 1)
    body_seconds: float = _setting(
        10.0,
        "Seconds in which a request's head, its body, and the reading of its answer must each be done.",
        0.1,
    )
    connections: int = _setting(1_000, "Connections open at a time; more are answered 503.", 1)
    address_connections: int = _setting(500, "Connections that one address may have open.", 1)
    stop_seconds: int = _setting(30, "Seconds that requests may take to finish when the service stops.", 1)
    access_log: bool = _setting(False, "Log every request, not only errors.")

    def __post_init__(self) -> None:
        for row in dataclasses.fields(self):
            least = row.metadata["least"]
            value = getattr(self, row.name)
            if row.type == "int":
                whole(row.name, value, int(least))
            elif row.type == "float" and not least <= as_number(value) < math.inf:
                raise InputError(f"{row.name} must be a number of at least {least:g}, not {value!r}")
        if self.port > 65_535:
            raise InputError(f"port must be at most 65535, not {self.port}")
        address = parse(self.store)
        if self.workers > 1 and not backend_of(address).several_workers:
            raise InputError(
                "a SQLite file has one writer: --workers 1, or a PostgreSQL database "
                "(--store postgresql://USER@HOST/NAME)"
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def names(self) -> frozenset[str]:
        """The names that a request's Host may give, in lower case."""
        own = {"localhost", "127.0.0.1", "[::1]", f"[{self.host}]" if ":" in self.host else self.host}
        return frozenset(name.lower() for name in own | set(self.hosts))


def load(
    path: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Settings:
    """Read the settings from a file, the environment and the command line. Later ones override.

    Parameters
    ----------
    path : path-like, optional
        A TOML file. The default is the file that `ACCRUAL_CONFIG` names, if any.
    options : mapping, optional
        Values by name; None counts as not given.
    """
    environment = environment or {}
    rows = {row.name: row for row in dataclasses.fields(Settings)}
    given: dict[str, Any] = {}
    file = path or environment.get(CONFIG)
    if file:
        found = _read(Path(file))
        only(f"setting in {file}", found, rows)
        for name, value in found.items():
            given[name] = _typed(rows[name], value, f"{name} in {file}")
    for name, row in rows.items():
        text = environment.get(PREFIX + name.upper())
        if text is not None:
            given[name] = _typed(row, text, PREFIX + name.upper())
    for name, value in (options or {}).items():
        if value not in (None, [], ()):
            given[name] = tuple(value) if isinstance(value, list) else value
    return Settings(**given)


def named(pairs: Iterable[str]) -> dict[str, Any]:
    """Read settings in the form of the command line, NAME=VALUE.

    Examples
    --------
    >>> named(["queue=500", "access_log=true"])
    {'queue': 500, 'access_log': True}
    """
    rows = {row.name: row for row in dataclasses.fields(Settings)}
    given = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise InputError(f"--set takes NAME=VALUE, not {pair!r}")
        only("setting", [name], rows)
        given[name] = _typed(rows[name], value, name)
    return given


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path} is not TOML: {error}") from None


def _typed(row: dataclasses.Field[Any], value: Any, where: str) -> Any:
    """Convert a value from a file or from text to the type of its setting."""
    try:
        if row.name.endswith("_seconds") and isinstance(value, str) and value.strip()[-1:].isalpha():
            value = parse_duration(value, where)
            value = int(value) if row.type == "int" else value
        if row.type == "int" and not isinstance(value, bool | float):
            return int(value)
        if row.type == "float" and not isinstance(value, bool):
            return float(value)
        if row.type == "bool":
            words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
            return words[str(value).lower()]
        if row.type == "str" and isinstance(value, str):
            return value
        if row.type == "tuple[str, ...]":
            parts = value.split(",") if isinstance(value, str) else value
            if all(isinstance(part, str) for part in parts):
                return tuple(part.strip() for part in parts if part.strip())
    except (ValueError, TypeError, KeyError):
        pass
    kinds = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}
    raise InputError(f"{where} must be {kinds.get(str(row.type), 'a list of names')}, not {value!r}")
