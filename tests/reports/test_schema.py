"""The schema Spark applies is the published one, declared again: neither can change alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from reports import schema
from reports.model import LEVELS, VERDICTS

PUBLISHED = json.loads((Path(__file__).parents[2] / "conformance" / "result.schema.json").read_text())["$defs"]


def published_field(name: str, definition: dict[str, Any]) -> schema.Field:
    """The field that stands for a published property. Which texts are moments is told by their names alone."""
    match definition:
        case {"type": "string"} if name in ("started", "ended"):
            return schema.MOMENT
        case {"const": 1} | {"type": "integer"}:
            return schema.INTEGER
        case {"type": "number"}:
            return schema.NUMBER
        case {"type": "boolean"}:
            return schema.BOOLEAN
        case {"type": "object"} | {"$ref": "#/$defs/counts"}:
            return schema.OBJECT
        case {"type": ["object", "null"]}:
            return schema.OBJECT.or_null()
        case {"type": "array", "items": {"type": "string"}}:
            return schema.TEXTS
        case {"type": "array"}:
            return schema.OBJECTS
        case {"enum": values} if None in values:
            return schema.TEXT.or_null()
        case {"type": ["string", "null"]}:
            return schema.TEXT.or_null()
        case {"type": "string"} | {"enum": _} | {"const": _} | {"$ref": "#/$defs/verdict"}:
            return schema.TEXT
    raise AssertionError(f"a kind of property this room does not know: {definition}")


@pytest.mark.parametrize("kind", ["header", "check", "not-run", "footer"])
def test_every_kind_has_the_published_fields_with_the_published_types(kind: str) -> None:
    published = PUBLISHED[kind]
    assert schema.KINDS[kind] == {
        name: published_field(name, definition) for name, definition in published["properties"].items()
    }


@pytest.mark.parametrize("kind", ["header", "check", "not-run", "footer"])
def test_every_published_field_is_required_as_ingest_assumes(kind: str) -> None:
    assert set(PUBLISHED[kind]["required"]) == set(PUBLISHED[kind]["properties"])


def test_there_are_no_other_kinds_of_line() -> None:
    others = {"verdict", "counts", "exchange"}
    assert set(PUBLISHED) - others == set(schema.KINDS)


def test_the_values_are_the_published_ones() -> None:
    fields = PUBLISHED["check"]["properties"]
    assert set(VERDICTS) == set(PUBLISHED["verdict"]["enum"])
    assert list(LEVELS) == fields["level"]["enum"]
    assert [*schema.VALUES["grade"], None] == fields["grade"]["enum"]
    assert schema.VALUES["schema_version"] == (str(PUBLISHED["header"]["properties"]["schema_version"]["const"]),)


def test_the_kinds_agree_on_the_fields_they_share() -> None:
    columns: dict[str, set[str]] = {}
    for fields in schema.KINDS.values():
        for name, field in fields.items():
            columns.setdefault(name, set()).add(field.column.simpleString())
    assert [name for name, types in columns.items() if len(types) > 1] == []
