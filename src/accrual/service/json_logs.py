"""Logs, one JSON document a line."""

from __future__ import annotations

import logging
import os
from typing import Any

import msgspec

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


class JsonLines(logging.Formatter):
    """Write a record's time, level, text and extra fields as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "text": record.getMessage(),
            "process": os.getpid(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def logging_config() -> dict[str, Any]:
    """Return the configuration for `logging.config.dictConfig`: lines of JSON on stderr, with warnings."""
    logging.captureWarnings(True)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "accrual.service.json_logs.JsonLines"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "loggers": {
            "accrual": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
            "py.warnings": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
            "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        },
    }
