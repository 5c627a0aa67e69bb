"""Kafka settings in one line: parameters of the client library beside the guard's own."""

from __future__ import annotations

from typing import Any

from consumers.settings import KafkaSettings


def sorted_out(changes: dict[str, Any]) -> dict[str, Any]:
    """``changes`` as the section ``kafka`` has them: what is no setting of the guard is one of ``client``."""
    own = {name: value for name, value in changes.items() if name in KafkaSettings.model_fields}
    client = {name: value for name, value in changes.items() if name not in own}
    return {**own, "client": {**own.get("client", {}), **client}}


def kafka_settings(**changes: Any) -> KafkaSettings:
    """Settings with these changes."""
    return KafkaSettings.model_validate(sorted_out(changes))


def changed(settings: KafkaSettings, **changes: Any) -> KafkaSettings:
    """A copy of ``settings`` with these changes."""
    update = sorted_out(changes)
    return settings.model_copy(update={**update, "client": {**settings.client, **update["client"]}})
