"""Settings -> what checks claims: parameters, and the verifier that they were fitted with."""

from __future__ import annotations

from guardrail.errors import ConfigError
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_parameters, load_rules_parameters
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.local.verifier import load_verifier
from guardrail.judges.local.verifier_files import packaged_folder


def build_checker(settings: LocalJudgeSettings) -> ClaimChecker:
    """The checker that the settings describe; loads the verifier, if there is one. Raises ConfigError.

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
        return ClaimChecker(settings, parameters)
    if not wanted.enabled:
        if settings.parameters_path is not None:
            raise ConfigError(
                f"judge.local.verifier.enabled is false, but {settings.parameters_path} was fitted with the "
                f"verifier {fitted.name}; leave judge.local.parameters_path unset, or name parameters that "
                "were fitted without one"
            )
        return ClaimChecker(settings, load_rules_parameters())
    folder = wanted.path or packaged_folder()
    if folder is None:
        raise ConfigError(
            f"judge.local.verifier.path is unset and the package has no verifier, but the parameters were "
            f"fitted with {fitted.name}; name its folder, reinstall the package, or set "
            "judge.local.verifier.enabled to false"
        )
    return ClaimChecker(settings, parameters, load_verifier(folder, wanted.threads, wanted.batch_size))
