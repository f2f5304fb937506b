"""`make clients`: write the types of both clients from the OpenAPI description of the service.

A field that is added to a state of `live` or to a message of the service is described there. This writes it,
with its description, to the Python client and to the TypeScript client. A test compares the files.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from accrual.service.bandit_routes import BanditRoutes
from accrual.service.openapi import openapi_document
from accrual.service.traffic_routes import TrafficRoutes

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / "src/accrual/client/results.py"
TYPESCRIPT = ROOT / "clients/typescript/src/results.ts"
SENT = ("Piece",)  # what the clients send as the user gives it
Schema = Mapping[str, Any]


def main() -> None:
    """Write both files."""
    schemas = client_schemas()
    PYTHON.write_text(python_types(schemas), encoding="utf-8")
    TYPESCRIPT.write_text(typescript_types(schemas), encoding="utf-8")


def client_schemas() -> dict[str, Schema]:
    """Return what the clients send and what the service answers, by name and in alphabetical order."""
    nobody = cast(Any, None)  # the table of routes needs no bandits
    document = openapi_document([*BanditRoutes(nobody).operations(), *TrafficRoutes(nobody).operations()])
    schemas: dict[str, Schema] = document["components"]["schemas"]
    answers = [
        described["responses"]["200"] for path in document["paths"].values() for described in path.values()
    ]
    found: set[str] = set()
    waiting = [*SENT, *_names(answers)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _names(schemas[name])
    return {name: schemas[name] for name in sorted(found)}


def _names(part: Any) -> list[str]:
    """Return the names of the schemas that a part of the document refers to."""
    return re.findall(r'"#/components/schemas/(\w+)"', json.dumps(part))


def python_types(schemas: Mapping[str, Schema]) -> str:
    """Return the Python client's types."""
    parts = [
        '"""What is sent to a service, and its answers. `make clients` writes this file."""\n\n'
        "from __future__ import annotations\n\nfrom dataclasses import dataclass, field\n"
        "from datetime import datetime\nfrom typing import Literal, TypedDict\n"
    ]
    for name, schema in schemas.items():
        parts.append(
            f"@dataclass(frozen=True)\nclass {name}:\n{_docstring(schema['description'])}\n"
            f"{_python_fields(schema)}"
        )
    for name in SENT:
        options = [field for field in schemas[name]["properties"] if field not in schemas[name]["required"]]
        lines = [f"    {field}: {_python(schemas[name]['properties'][field])}\n" for field in options]
        text = f'    """The optional fields of `{name}`."""\n\n'
        parts.append(f"class {name}Options(TypedDict, total=False):\n{text}{''.join(lines)}")
    return "\n\n".join(parts)


def _docstring(description: str) -> str:
    """Return a docstring of a class, or the one that stands below a field."""
    paragraphs = f'"""{description}"""'.split("\n\n")
    return "\n\n".join(_text(paragraph, "    ", 108) for paragraph in paragraphs) + "\n"


def _python_fields(schema: Schema) -> str:
    required = set(schema.get("required", ()))
    lines = []
    for name, described in sorted(schema["properties"].items(), key=lambda one: one[0] not in required):
        kind, default = _python(described), ""
        if name not in required:
            given = described.get("default")
            if isinstance(given, dict | list):
                default = f" = field(default_factory={type(given).__name__})"
            else:
                kind = kind if "default" in described else f"{kind} | None"
                default = f" = {given!r}".replace("'", '"')
        lines.append(f"    {name}: {kind}{default}\n")
        if described.get("description"):
            lines.append(_docstring(re.sub(r"\b[Nn]ull\b", "None", described["description"])))
    return "".join(lines)


def _python(schema: Schema) -> str:
    if "prefixItems" in schema:
        return f"tuple[{', '.join(map(_python, schema['prefixItems']))}]"
    if schema.get("type") == "array":
        return f"list[{_python(schema['items'])}]"
    if schema.get("type") == "object":
        return f"dict[str, {_python(schema['additionalProperties'])}]"
    if schema.get("format") == "date-time":
        return "str | datetime"
    plain = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}
    return _common(schema, plain, _python, lambda texts: f"Literal[{', '.join(texts)}]")


def typescript_types(schemas: Mapping[str, Schema]) -> str:
    """Return the TypeScript client's types."""
    parts = [
        "/** What is sent to a service, and its answers. Fields that a newer service adds have no type. */\n"
        "// `make clients` writes this file.\n"
    ]
    for name, schema in schemas.items():
        required = schema.get("required", ())
        lines = []
        for field, described in schema["properties"].items():
            kind, mark = _typescript(described), "" if field in required else "?"
            if name in SENT:
                kind = kind.removesuffix(" | null")  # it is left out instead
            lines.append(f"{_comment(described, '  ')}  readonly {field}{mark}: {kind};\n")
        parts.append(f"{_comment(schema, '')}export interface {name} {{\n{''.join(lines)}}}\n")
    return "\n".join(parts)


def _comment(schema: Schema, indent: str) -> str:
    text = " ".join(schema.get("description", "").split())
    if not text:
        return ""
    if len(text) + len(indent) <= 113:
        return f"{indent}/** {text} */\n"
    return f"{indent}/**\n{_text(text, f'{indent} * ', 120)}\n{indent} */\n"


def _typescript(schema: Schema) -> str:
    if "prefixItems" in schema:
        return f"readonly [{', '.join(map(_typescript, schema['prefixItems']))}]"
    if schema.get("type") == "array":
        item = _typescript(schema["items"])
        return f"readonly ({item})[]" if " " in item else f"readonly {item}[]"
    if schema.get("type") == "object":
        return f"Readonly<Record<string, {_typescript(schema['additionalProperties'])}>>"
    if schema.get("format") == "date-time":
        return "string | Date"  # JSON writes a Date as text
    plain = {
        "integer": "number",
        "number": "number",
        "string": "string",
        "boolean": "boolean",
        "null": "null",
    }
    return _common(schema, plain, _typescript, " | ".join)


def _common(
    schema: Schema,
    plain: Mapping[str, str],
    write: Callable[[Schema], str],
    choices: Callable[[Sequence[str]], str],
) -> str:
    """Write what both languages have: a name, one of several texts, one of several types, a plain type."""
    if "$ref" in schema:
        return cast(str, schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return choices([json.dumps(text) for text in schema["enum"]])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(map(write, schema["anyOf"])))
    return plain[schema["type"]]


def _text(text: str, indent: str, width: int) -> str:
    return textwrap.fill(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


if __name__ == "__main__":
    main()
