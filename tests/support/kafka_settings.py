"""Kafka settings in one line: parameters of the client library beside the guard's own."""

from __future__ import annotations

from typing import Any, Final

from consumers.settings import KafkaSettings
from tests.support.constants import made

_OWN: Final = KafkaSettings.model_fields.keys() | KafkaSettings.__class_vars__


def sorted_out(changes: dict[str, Any]) -> dict[str, Any]:
    """``changes`` as the section ``kafka`` has them: what is no setting of the guard is one of ``client``."""
    own = {name: value for name, value in changes.items() if name in _OWN}
    client = {name: value for name, value in changes.items() if name not in own}
    return {**own, "client": {**own.get("client", {}), **client}}


def kafka_settings(**changes: Any) -> KafkaSettings:
    """Settings with these changes."""
    return made(KafkaSettings, **sorted_out(changes))


def changed(settings: KafkaSettings, **changes: Any) -> KafkaSettings:
    """A copy of ``settings`` with these changes."""
    update = sorted_out(changes)
    constants = {name: getattr(settings, name) for name in KafkaSettings.__class_vars__}
    values = {name: getattr(settings, name) for name in KafkaSettings.model_fields} | constants
    return made(KafkaSettings, **{**values, **update, "client": {**settings.client, **update["client"]}})
