"""Settings -> what checks claims: parameters, and the verifier that they were fitted with."""

from __future__ import annotations

import os
from pathlib import Path

from guardrail.errors import ConfigError
from guardrail.judges.local.check import ClaimChecker, require_own_verifier
from guardrail.judges.local.combiner import Parameters, load_parameters, load_rules_parameters
from guardrail.judges.local.fitted import FittedVerifier
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.local.verifier import load_verifier
from guardrail.judges.local.verifier_files import packaged_folder, read_folder


def build_checker(settings: LocalJudgeSettings) -> ClaimChecker:
    """The checker that the settings describe; loads the verifier, if there is one. Raises ConfigError."""
    parameters, folder = _chosen(settings)
    if folder is None:
        return ClaimChecker(settings, parameters)
    wanted = settings.verifier
    return ClaimChecker(settings, parameters, load_verifier(folder, wanted.threads, wanted.batch_size))


def check_files(settings: LocalJudgeSettings) -> None:
    """What ``build_checker`` would refuse of the files that are here, without loading the verifier.

    Raises ConfigError. Of files that the settings name and that are not here nothing is said: they may be
    where the judge runs.
    """
    if not _readable(settings.parameters_path):
        return
    parameters, folder = _chosen(settings)
    ClaimChecker(settings, load_rules_parameters()).require_known(parameters)
    if folder is not None and _readable(folder):
        manifest, _, _ = read_folder(folder)
        require_own_verifier(parameters, FittedVerifier(name=manifest.name, sha256=manifest.checksum))


def _readable(path: Path | None) -> bool:
    return path is None or os.access(path, os.R_OK)


def _chosen(settings: LocalJudgeSettings) -> tuple[Parameters, Path | None]:
    """The parameters, and the folder of their verifier where they have one. Raises ConfigError.

    A combiner is never asked without the features that it was fitted with: without the verifier other
    parameters judge.
    """
    parameters = load_parameters(settings.parameters_path)
    wanted, fitted = settings.verifier, parameters.verifier
    if fitted is None:
        if wanted.enabled and wanted.path is not None:
            raise ConfigError(
                f"judge.local.verifier.path is {wanted.path}, but the parameters were fitted without a "
                "verifier; set judge.local.parameters_path to parameters that training.calibrate --verifier "
                "wrote for it"
            )
        return parameters, None
    if not wanted.enabled:
        if settings.parameters_path is not None:
            raise ConfigError(
                f"judge.local.verifier.enabled is false, but {settings.parameters_path} was fitted with the "
                f"verifier {fitted.name}; leave judge.local.parameters_path unset, or name parameters that "
                "were fitted without one"
            )
        return load_rules_parameters(), None
    folder = wanted.path or packaged_folder()
    if folder is None:
        raise ConfigError(
            f"judge.local.verifier.path is unset and the package has no verifier, but the parameters were "
            f"fitted with {fitted.name}; name its folder, reinstall the package, or set "
            "judge.local.verifier.enabled to false"
        )
    return parameters, folder
