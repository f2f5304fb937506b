"""Read bodies and query parameters as typed messages, with errors in the API's own words."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import inspect

from accrual.core.errors import InputError, only, unknown
from accrual.service.messages import OTHER_WORDS
from accrual.service.refusals import Refusal

_KINDS = {
    "int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "null": "null",
    "array": "a list", "object": "an object",
}  # fmt: skip
_PLACE = re.compile(r"(.*?)(?: - at `(.*)`)?", re.DOTALL)
_FRACTION = re.compile(r"Expected `[^`]*\bint\b[^`]*`, got `float`")
_STEP = re.compile(r"\.([^.\[]+)|\[(?:\d*|\.\.\.)\]")
_BOUND = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


def json_reader(kind: Any) -> Callable[[bytes], Any]:
    """Return a function that reads a body of JSON as a message of `kind`, or refuses it.

    A number without a fraction, such as 174.0, is a whole number, as in JSON Schema.

    Examples
    --------
    >>> json_reader(list[int])(b"[1, 174.0]")
    [1, 174]
    >>> json_reader(list[int])(b"[1, true]")
    Traceback (most recent call last):
    accrual.service.refusals.Refusal: [1] must be a whole number, not true or false
    >>> json_reader(list[int])(b"[true, ")
    Traceback (most recent call last):
    accrual.service.refusals.Refusal: the body is not JSON: Input data was truncated
    >>> json_reader(dict[str, int])(b'{"m": 1, "n": 1.5}')  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    accrual.service.refusals.Refusal: ["n"] must be a whole number, not a number with a fraction ...
    >>> class Arm(msgspec.Struct):
    ...     name: str
    ...     cap: float
    >>> json_reader(list[Arm])(b'["jazz"]')
    Traceback (most recent call last):
    accrual.service.refusals.Refusal: [0] must be an object with name, cap, not text
    """
    decode = msgspec.json.Decoder(kind).decode
    decode_loosely = msgspec.json.Decoder(kind, strict=False).decode  # takes 174.0 for 174, but also "174"

    def read_again(body: bytes, first: msgspec.ValidationError) -> Any:
        with suppress(RecursionError):
            _find_end(body)  # a JSON error is reported before an error of content, wherever it is
        if not _FRACTION.match(str(first)):
            raise first
        decode_loosely(body)  # raises the first error before a large body becomes Python objects
        return msgspec.convert(_decode_whole(body), kind)

    def read(body: bytes) -> Any:
        try:
            try:
                return decode(body)
            except msgspec.ValidationError as first:
                return read_again(body, first)
        except msgspec.ValidationError as error:
            keys = _keys_at(body, kind, str(error)) if "[...]" in str(error) else []
            raise Refusal("invalid", _in_words(error, kind, keys)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refusal("malformed", f"the body is not JSON: {error}") from None

    return read


def _whole_if_possible(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value


_find_end = msgspec.json.Decoder(msgspec.Raw).decode
_decode_whole = msgspec.json.Decoder(float_hook=_whole_if_possible).decode


def _keys_at(body: bytes, kind: Any, error: str) -> list[str]:
    """Find the keys for which msgspec writes ``[...]`` in an error, the outermost first.

    Mappings are read in order, so the wrong key is the last of the fewest first keys that give this error.
    """
    root: Any = {"$": _decode_whole(body)}
    holder: Any = root
    place: Any = "$"
    keys: list[str] = []
    for step in _STEP.finditer(error.rpartition(" - at `")[2].removesuffix("`")):
        inside = holder[place]
        if step[0] != "[...]":
            holder, place = inside, step[1] or int(step[0][1:-1])
            continue
        items = list(inside.items())

        def wrong_by(last: int, holder: Any = holder, place: Any = place, items: Any = items) -> bool:
            holder[place] = dict(items[: last + 1])
            try:
                msgspec.convert(root["$"], kind)
            except msgspec.ValidationError as again:
                return str(again) == error
            return False

        found = bisect_left(range(len(items)), True, key=wrong_by)  # a few trials, for any number of keys
        if found == len(items):
            break
        holder[place] = dict(items[: found + 1])
        holder, place = holder[place], items[found][0]
        keys.append(place)
    return keys


def read_query(kind: type[msgspec.Struct], text: str) -> Any:
    """Read the part of an address after the question mark as a message of `kind`, or refuse it.

    Examples
    --------
    >>> class Page(msgspec.Struct):
    ...     limit: int = 20
    >>> read_query(Page, "limit=5")
    Page(limit=5)
    >>> read_query(Page, "limt=5")
    Traceback (most recent call last):
    accrual.service.refusals.Refusal: unknown query parameter 'limt'; did you mean 'limit'? (one of: limit)
    """
    if not text:
        return kind()
    pairs = parse_qsl(text, keep_blank_values=True)
    fields = kind.__struct_fields__
    if not fields:
        raise Refusal("invalid", "this address takes no query parameters")
    try:
        only("query parameter", (name[:100] for name, _ in pairs), fields)
    except InputError as error:
        raise Refusal("invalid", str(error)) from None
    given = dict(pairs)
    if len(given) < len(pairs):
        raise Refusal("invalid", "a query parameter is given twice")
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal("invalid", _in_words(error, kind)) from None


def _in_words(error: msgspec.ValidationError, kind: Any, keys: Sequence[str] = ()) -> str:
    """Say what is wrong, and where, as in "arms[0].cap must be a number, not text".

    `keys` are those of mappings on the way, for which the error itself has dots.
    """
    match = _PLACE.fullmatch(str(error))
    assert match is not None  # the pattern fits any text
    text, path = match[1], match[2] or "$"
    place = path.removeprefix("$").removeprefix(".")
    for key in keys:
        place = place.replace("[...]", f"[{json.dumps(key[:100], ensure_ascii=False)}]", 1)
    place = place[:200]
    if wrong := re.fullmatch(r"Expected `([^`]+)`, got `(\w+)`", text):
        right = f"{_kinds(wrong[1])}{_described(wrong[1], kind, path)}"
        which = " with a fraction or beyond 64 bits" if _FRACTION.match(text) else ""
        return f"{place or 'the body'} must be {right}, not {_kinds(wrong[2])}{which}{_examples(kind, path)}"
    if wrong := re.fullmatch(r"Expected `([^`]+)` (of length )?([<>]=?) (\S+)", text):
        length = " with a length" if wrong[2] else ""
        most = float(wrong[4])
        bound = f"{most:,.0f}" if most.is_integer() and abs(most) < 1e16 else f"{most:g}"
        return f"{place or 'the body'} must be {_kinds(wrong[1])}{length} of {_BOUND[wrong[3]]} {bound}"
    if wrong := re.fullmatch(r"Invalid enum value (.*)", text, re.DOTALL):
        return f"{place or 'the body'} must be {_choices_at(kind, path)}, not {wrong[1][:100]}"
    if wrong := re.fullmatch(r"Object contains unknown field `(.*)`", text, re.DOTALL):
        field = wrong[1][:100]
        text = str(unknown("field", field, _fields_at(kind, path), OTHER_WORDS.get(field)))
    elif wrong := re.fullmatch(r"Object missing required field `(.*)`", text):
        text = f"the field {wrong[1]!r} is missing"
    else:
        text = text[:1].lower() + text[1:]
    return f"{place}: {text}" if place else text


def _described(expected: str, kind: Any, path: str) -> str:
    """Name the fields of an object, or of the objects of a list, that is expected at `path`."""
    if expected == "object" and (fields := _fields_at(kind, path)):
        return f" with {', '.join(fields)}"
    if expected == "array" and (fields := _fields_at(kind, f"{path}[]")):
        return f" of objects with {', '.join(fields)}"
    return ""


def _examples(kind: Any, path: str) -> str:
    """Show how the field at `path`, or the field that holds it, may be written, if its description says."""
    while step := re.fullmatch(r"(.*?)\.(\w+)((?:\[[^\]]*\])*)", path):
        structs = [one for one in _types_at(kind, step[1]) if isinstance(one, inspect.StructType)]
        fields = [field for one in structs for field in one.fields if field.encode_name == step[2]]
        for found in (_metadata(field.type) for field in fields):
            if "examples" in found:
                texts = [json.dumps(one) for one in found["examples"]]
                return f"; for example {' or '.join(texts)}"
        path = step[1]
    return ""


def _metadata(found: inspect.Type) -> dict[str, Any]:
    """Return what is said about a type, or about a member of a union, beside the type itself."""
    if isinstance(found, inspect.Metadata):
        return (found.extra_json_schema or {}) or _metadata(found.type)
    parts = found.types if isinstance(found, inspect.UnionType) else ()
    return next((said for part in parts if (said := _metadata(part))), {})


def _kinds(names: str) -> str:
    return " or ".join(_KINDS.get(name, name) for name in names.split(" | "))


def _fields_at(kind: Any, path: str) -> list[str]:
    """List the fields that an object at `path` of a message of `kind` may have."""
    structs = [t for t in _types_at(kind, path) if isinstance(t, inspect.StructType)]
    return [field.encode_name for struct in structs for field in struct.fields]


def _choices_at(kind: Any, path: str) -> str:
    """Name the few texts that are allowed at `path`."""
    types = _types_at(kind, path)
    texts = [repr(value) for t in types if isinstance(t, inspect.LiteralType) for value in t.values]
    return " or ".join(texts + ["a list" for t in types if isinstance(t, inspect.ListType)])


def _types_at(kind: Any, path: str) -> list[inspect.Type]:
    """List the types that are allowed at `path` of a message of `kind`."""
    types = _flat([inspect.type_info(kind)])
    for step in _STEP.finditer(path):
        if step[1]:
            types = [f.type for t in types if isinstance(t, inspect.StructType) for f in t.fields
                     if f.encode_name == step[1]]  # fmt: skip
        else:
            lists = [t.item_type for t in types if isinstance(t, inspect.ListType)]
            types = lists + [t.value_type for t in types if isinstance(t, inspect.DictType)]
        types = _flat(types)
    return types


def _flat(types: list[inspect.Type]) -> list[inspect.Type]:
    """Replace unions by their members, and annotated types by the types themselves."""
    flat: list[inspect.Type] = []
    for found in types:
        if isinstance(found, inspect.Metadata):
            flat += _flat([found.type])
        elif isinstance(found, inspect.UnionType):
            flat += _flat(list(found.types))
        else:
            flat.append(found)
    return flat
