"""The description of the API as OpenAPI, made from the table of operations."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any, cast, get_args, get_type_hints

import msgspec

from accrual.core.version import VERSION
from accrual.service.messages import BANDIT, WHOLE_MOST
from accrual.service.operations import Operation
from accrual.service.refusals import KINDS, MEDIA_TYPE, ProblemDocument

_SCHEMAS = "#/components/schemas/"
_TEXT = """
Bandits whose reward for one decision arrives in pieces over time. Ask for a decision, show its arm, and
send every piece of its reward, with the decision's id, when it arrives. The service answers when a
decision or piece is durable.

Errors are problem documents (RFC 9457). A program should use the last word of their `type`.
"""
_SECTION = re.compile(r"\n\n[A-Z]\w+\n-{3,}\n")  # of a docstring
_PATH: dict[str, tuple[str, dict[str, Any]]] = {  # the parts of a path in braces
    "bandit": ("A bandit's name.", {"type": "string", "pattern": BANDIT}),
    "id": ("A decision's id.", {"type": "integer", "minimum": 0, "maximum": WHOLE_MOST}),
}


def openapi_document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Describe operations as OpenAPI 3.1."""
    types = [kind for row in operations for kind in (row.takes, row.out, row.query) if kind is not None]
    shapes, schemas = msgspec.json.schema_components(
        [*types, ProblemDocument], ref_template=_SCHEMAS + "{name}"
    )
    shape = dict(zip(map(repr, types), shapes, strict=False))
    known = {kind.__name__: kind for one in types for kind in _classes(one)}
    for name, schema in schemas.items():
        _describe(schema, known.get(name, ProblemDocument))
    paths: dict[str, Any] = {}
    for row in operations:
        parameters = [_path_parameter(name) for name in _PATH if f"{{{name}}}" in row.path]
        query = schemas[row.query.__name__]["properties"]
        parameters += [
            {"name": name, "in": "query", "description": schema.get("description", ""), "schema": schema}
            for name, schema in query.items()
        ]
        described: dict[str, Any] = {
            "operationId": row.id,
            "summary": row.id,
            "description": inspect.getdoc(row.answer),
            "parameters": parameters,
            "responses": _responses(row, shape[repr(row.out)]),
            "security": [] if row.scope is None else [{"key": []}, {}],
        }
        if row.takes is not None:
            content = {"application/json": {"schema": shape[repr(row.takes)]}}
            described["requestBody"] = {"required": not row.body_optional, "content": content}
        paths.setdefault(row.path, {})[row.method.lower()] = described
    for row in operations:
        schemas.pop(row.query.__name__, None)
    _link(paths)
    info = {
        "title": "accrual", "version": VERSION, "description": _TEXT.strip(),
        "summary": "Decisions whose reward arrives in pieces",
    }  # fmt: skip
    key = {"type": "http", "scheme": "bearer", "description": "A key of `accrual keys create`."}
    components = {"schemas": schemas, "securitySchemes": {"key": key}}
    document = {"openapi": "3.1.0", "info": info, "paths": paths, "components": components}
    renamed: dict[str, Any] = _with_public_names(document)
    return renamed


def _classes(kind: Any) -> Iterator[type]:
    """Yield the messages, and the dataclasses of `live`, that a type is made of."""
    own = is_dataclass(kind) or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))
    if own:
        yield cast(type, kind)
    for part in get_type_hints(kind).values() if own else get_args(kind):
        yield from _classes(part)


def _describe(schema: dict[str, Any], kind: type) -> None:
    """Describe a schema by the docstring of its class, and its fields by those below them.

    Every field of a class of `live` is always sent.
    """
    text = _SECTION.split(inspect.cleandoc(schema.get("description", "")))[0]
    schema["description"] = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    if is_dataclass(kind):
        schema["required"] = list(schema["properties"])
    for name, text in _field_texts(kind).items():
        said = re.sub(r"\bNone\b", "null", text.replace(". None", ". Null"))
        schema["properties"][name]["description"] = said


def _field_texts(kind: type) -> dict[str, str]:
    """Return the docstrings that stand below the fields of a class."""
    (found,) = ast.parse(inspect.getsource(kind)).body
    texts = {}
    for one, other in itertools.pairwise(cast(ast.ClassDef, found).body):
        match one, other:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = " ".join(text.split())
    return texts


def _with_public_names(part: Any) -> Any:
    """Name schemas as clients name them, without the endings of the classes in `messages`."""
    if isinstance(part, list):
        return [_with_public_names(one) for one in part]
    if isinstance(part, dict):
        return {_public(key): _with_public_names(value) for key, value in part.items()}
    return _public(part) if isinstance(part, str) else part


def _public(text: str) -> str:
    return re.sub(r"^((?:#/components/schemas/)?[A-Z][A-Za-z]+)(?:In|Out)$", r"\1", text)


def _path_parameter(name: str) -> dict[str, Any]:
    text, schema = _PATH[name]
    return {"name": name, "in": "path", "required": True, "description": text, "schema": schema}


def _responses(row: Operation, out: Any) -> dict[str, Any]:
    """Describe the answers and the refusals of an operation."""
    content = {"application/json": {"schema": out}}
    done = (
        {200: "It exists already, with the same settings.", 201: "Made."} if row.created else {200: "Done."}
    )
    responses: dict[str, Any] = {
        str(status): {"description": text, "content": content} for status, text in done.items()
    }
    statuses = {400, 405, 408, 413, 421, 422, 431, 500}
    if row.path == "/readyz":
        statuses |= {503}
    if row.scope is not None:
        statuses |= {401, 403, 429, 503}
        if "{" in row.path:
            statuses |= {404, 409}
        if row.method == "POST":
            statuses |= {404, 409, 415}
    for status in sorted(statuses):
        titles = sorted(kind.title for kind in KINDS.values() if kind.status == status)
        schema = {"$ref": f"{_SCHEMAS}{ProblemDocument.__name__}"}
        responses[str(status)] = {
            "description": "; ".join(titles),
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
    return responses


def _link(paths: dict[str, Any]) -> None:
    """Link the answer that makes a bandit or a decision to the operations that take it."""
    name = {"bandit": "$response.body#/name"}
    for status in ("200", "201"):
        paths["/v1/bandits"]["post"]["responses"][status]["links"] = {
            operation: {"operationId": operation, "parameters": name}
            for operation in ("decide", "getState", "addArm", "exportEvents")
        }
    same = {"bandit": "$request.path.bandit", "id": "$response.body#/decisions/0/id"}
    paths["/v1/bandits/{bandit}/decisions"]["post"]["responses"]["200"]["links"] = {
        operation: {"operationId": operation, "parameters": same}
        for operation in ("explainDecision", "closeDecision")
    }
