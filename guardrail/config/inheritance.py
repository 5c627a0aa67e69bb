"""``policies.NAME.extends``: a policy takes the settings that it omits from another one.

This works on plain values, before validation, because only there a policy's own settings can be told from
defaults. It checks only names; values of the wrong form stay, for the validation to reject.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic_core import PydanticCustomError

from guardrail.leaves import Loc
from guardrail.policy import DEFAULT_RULES, RULE_LISTS

_EXTENDS: Final = "extends"
_BEFORE, _RULES, _AFTER = RULE_LISTS
_NOT_INHERITED: Final = frozenset({"name", _EXTENDS, *RULE_LISTS})


def unknown_policy(path: Loc, name: str, known: Iterable[str]) -> PydanticCustomError:
    """The error for a validator to raise where no policy has the name at ``path``."""
    names = sorted(known)
    context: dict[str, Any] = {
        "where": ".".join(map(str, path)),
        "name": repr(name),
        "known": ", ".join(names),
    }
    context |= {"path": path, "value": name, "names": names}
    template = "{where}: unknown policy {name}; known: {known}"
    return PydanticCustomError("unknown_policy", template, context)


def inherit(policies: Mapping[str, Any]) -> tuple[dict[str, Any], list[PydanticCustomError]]:
    """The policies with inherited values written out, and what is wrong with their ``extends``."""
    problems = [*_unknown(policies), *cycles(policies)]
    if problems:
        return dict(policies), problems
    resolved: dict[str, Any] = {}
    for name in policies:
        _resolve(name, policies, resolved)
    return resolved, []


def cycles(policies: Any) -> list[PydanticCustomError]:
    """Every policy that extends itself, directly or indirectly; each is reported at its own place."""
    found = []
    for name in policies if isinstance(policies, Mapping) else ():
        chain = [name]
        while (base := _base(policies, chain[-1])) is not None and base not in chain:
            chain.append(base)
        if base is not None and base == name:  # a name in a file may be null
            way = f": {' -> '.join(map(str, (*chain, name)))}" if len(chain) > 1 else ""
            context = {"path": ("policies", name, _EXTENDS), "value": policies[name][_EXTENDS], "way": way}
            template = "it extends itself{way}; name another policy, or leave it out"
            found.append(PydanticCustomError("extends_cycle", template, context))
    return found


def is_inherited(policies: Any, path: tuple[str | int, ...]) -> bool:
    """Whether the policy's setting at ``path`` is inherited, so that its faults are reported at the other
    policy.
    """
    if len(path) < 3 or path[0] != "policies" or not isinstance(policies, Mapping):
        return False
    name, field, *below = path[1:]
    if _base(policies, name) is None:
        return False
    given = policies[name]
    if field not in given:
        return True
    # Mappings are merged one by one; lists, and texts, are the policy's own.
    return bool(below) and isinstance(given[field], Mapping) and below[0] not in given[field]


def _base(policies: Mapping[Any, Any], name: Any) -> str | None:
    policy = policies.get(name)
    base = policy.get(_EXTENDS) if isinstance(policy, Mapping) else None
    return base if isinstance(base, str) else None


def _unknown(policies: Mapping[str, Any]) -> Iterator[PydanticCustomError]:
    for name in policies:
        base = _base(policies, name)
        if base is not None and base not in policies:
            yield unknown_policy(("policies", name, _EXTENDS), base, map(str, policies))


def _resolve(name: str, policies: Mapping[str, Any], resolved: dict[str, Any]) -> Any:
    """The values of a policy whose chain ends."""
    chain = [name]
    while chain[-1] not in resolved and (base := _base(policies, chain[-1])) is not None:
        chain.append(base)
    for each in reversed(chain):
        if each in resolved:
            continue
        policy, base = policies[each], _base(policies, each)
        resolved[each] = policy if base is None else _joined(resolved[base], policy)
    return resolved[name]


def _joined(base: Any, own: Mapping[str, Any]) -> Any:
    if not isinstance(base, Mapping):
        return {key: value for key, value in own.items() if key != _EXTENDS}
    taken = {key: value for key, value in base.items() if key not in _NOT_INHERITED}
    said = {key: value for key, value in own.items() if key != _EXTENDS}
    if _RULES not in own and any(each in base for each in RULE_LISTS):
        taken[_RULES] = _all_rules(base)
    return merged(taken, said)


def _all_rules(policy: Mapping[str, Any]) -> Any:
    """The rules of a policy in the order of trying."""
    lists = [policy.get(_BEFORE, ()), policy.get(_RULES, DEFAULT_RULES), policy.get(_AFTER, ())]
    if all(isinstance(each, list | tuple) for each in lists):
        return [rule for each in lists for rule in each]
    return next(each for each in lists if not isinstance(each, list | tuple))


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with the values of ``over`` in it: mappings key by key, all else replaced."""
    found = dict(base)
    for key, value in over.items():
        below = found.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = merged(below, value)
        found[key] = value
    return found
