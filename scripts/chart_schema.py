"""Writes what checks config.settings into helm/guardrail/values.schema.json, from the settings themselves.

python -m scripts.chart_schema
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from consumers.settings import GuardSettings

SCHEMA: Final = Path(__file__).parent.parent / "helm" / "guardrail" / "values.schema.json"
_WRITTEN: Final = re.compile(r'^    "settings(?:\.\w+)?": \{.*\},\n', re.MULTILINE)
_BEGIN: Final = '  "definitions": {\n'
_SECRET: Final = {"$ref": "#/definitions/secret"}
# Addresses without a login are no secrets. The chart's template refuses those with one, in words.
_ADDRESSES: Final = ("redis_url", "store", "webhook_url")
_CONFIDENTIAL: Final = "(?i)(authorization|api.?key|token|secret|password|cookie|credential)"
# Some of these the settings get from variables, so that they may be missing in the ConfigMap.
_LEFT_OUT: Final = {"title", "description", "default", "format", "writeOnly", "required", "discriminator"}


def written() -> str:
    """The whole file as it should be."""
    text = _WRITTEN.sub("", SCHEMA.read_text(encoding="utf-8"))
    lines = [f"    {json.dumps(name)}: {json.dumps(part)},\n" for name, part in _definitions().items()]
    before, begin, after = text.partition(_BEGIN)
    return before + begin + "".join(lines) + after


def _definitions() -> dict[str, Any]:
    schema = GuardSettings.model_json_schema()
    parts = schema.pop("$defs")
    found = {"settings": _part(schema)}
    found |= {f"settings.{name}": _part(part) for name, part in sorted(parts.items())}
    kafka = found["settings.KafkaSettings"]
    kafka["type"] = ["object", "null"]
    kafka["properties"]["group_instance_id"] = {
        "type": "null",
        "description": "workload.staticMembership sets it for each pod",
    }
    found["settings.Policy"]["type"] = ["object", "null"]  # all of it from the defaults
    for name in ("host", "port"):
        for section, value in (
            ("Ops", f"ops.{name}"),
            ("Serve", "ops.host" if name == "host" else "gateway.port"),
        ):
            found[f"settings.{section}Settings"]["properties"][name] = {
                "type": "null",
                "description": f"{value} of the chart sets it",
            }
    return found


def _part(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_part(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    part: dict[str, Any] = {}
    for name, value in schema.items():
        match name:
            case "properties":
                part[name] = {key: _named(key, one) for key, one in value.items()}
            case "additionalProperties" if isinstance(value, dict) and value.get("writeOnly"):
                part[name] = {"type": "string"}
                part["patternProperties"] = {_CONFIDENTIAL: {"type": "null"}}
            case "additionalProperties" if isinstance(value, dict) and _is_secret(value):
                part[name] = _part(value)
                part["patternProperties"] = {_CONFIDENTIAL: _SECRET}
            case "$ref":
                part[name] = value.replace("#/$defs/", "#/definitions/settings.")
            case _ if name not in _LEFT_OUT:
                part[name] = _part(value)
    return part


def _named(name: str, schema: dict[str, Any]) -> Any:
    return _SECRET if name not in _ADDRESSES and _is_secret(schema) else _part(schema)


def _is_secret(schema: dict[str, Any]) -> bool:
    return any(kind.get("writeOnly") for kind in schema.get("anyOf", []))


if __name__ == "__main__":
    SCHEMA.write_text(written(), encoding="utf-8")
