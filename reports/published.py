"""The report as JSON, and the schema that is published for it: `reports/report.schema.json`.

The schema is made from the values of `reports.model`, and a test holds the file to it. `python -m reports.published`
prints it. Text in the JSON is as it stood in the result files: whoever shows it makes it safe.
"""

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, get_args, get_origin, get_type_hints

from reports.model import Report

# Rises when a field goes or changes its meaning; a new field leaves it as it is.
SCHEMA_VERSION: Final = 1

_PLAIN: Final[Mapping[object, str]] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def render(report: Report) -> str:
    return as_json({"schema_version": SCHEMA_VERSION, **vars(report)})


def as_json(value: object) -> str:
    """Values of the model as one line of JSON: for programs, and five times as quick to write as an indented text."""
    return json.dumps(value, default=vars, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    definitions: dict[str, Any] = {}
    root = _schema(Report, definitions)
    body = definitions.pop(root["$ref"].rpartition("/")[2])
    body["required"] = ["schema_version", *body["required"]]
    body["properties"] = {"schema_version": {"const": SCHEMA_VERSION}, **body["properties"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"An offset-conformance report (schema version {SCHEMA_VERSION})",
        **body,
        "$defs": dict(sorted(definitions.items())),
    }


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if hint is types.NoneType:
        return {"type": "null"}
    if isinstance(hint, type) and is_dataclass(hint):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # stands in while its own fields are looked at
            hints = get_type_hints(hint)
            definitions[hint.__name__] = {
                "type": "object",
                "description": " ".join((hint.__doc__ or "").split()),
                "required": [field.name for field in fields(hint)],
                "properties": {field.name: _schema(hints[field.name], definitions) for field in fields(hint)},
            }
        return {"$ref": f"#/$defs/{hint.__name__}"}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is types.UnionType:
        return {"anyOf": [_schema(each, definitions) for each in arguments]}
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))
