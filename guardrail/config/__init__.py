"""Configuration: one YAML file, environment variables that override it, and errors that say what to do."""

from guardrail.config.loading import SettingsFile, load_settings, with_places
from guardrail.config.problems import Problem, SettingsError
from guardrail.config.settings import LoggingSettings, Settings, ShutdownSettings

__all__ = [
    "LoggingSettings",
    "Problem",
    "Settings",
    "SettingsError",
    "SettingsFile",
    "ShutdownSettings",
    "load_settings",
    "with_places",
]
