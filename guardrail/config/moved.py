"""What became of settings from earlier versions: one table, from which the errors are made.

A key is a setting's path, with ``*`` for an item's number or a policy's name. A text is a remedy: where the
setting is now, or why it no longer exists. Add a line whenever you remove or rename a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_CONSTANT: Final = "take it out; what was the default always holds"
_LEARNED: Final = "take it out; the judge learns it from the server's answers"
_LLM: Final = ("judge", "llm")
_LIKE_LLM: Final = (("judge", "self_judging", "alternative"), ("judge", "llm", "fallbacks", "*"))
"""Sections whose settings are those of judge.llm."""


def _client(*names: str, **renamed: str) -> dict[str, str]:
    """Kafka settings that aiokafka has under the same or another name."""
    now = dict.fromkeys(names) | renamed
    return {f"kafka.{old}": f"it is kafka.client.{new or old} now" for old, new in now.items()}


MOVED: Final[Mapping[str, str]] = {
    # Kafka
    **_client(
        "client_id",
        "request_timeout_ms",
        "session_timeout_ms",
        "heartbeat_interval_ms",
        "max_poll_interval_ms",
        "max_poll_records",
        "fetch_max_wait_ms",
        "fetch_min_bytes",
        "fetch_max_bytes",
        "max_partition_fetch_bytes",
        "isolation_level",
        "linger_ms",
        "transaction_timeout_ms",
        max_batch_bytes="max_batch_size",
        max_request_bytes="max_request_size",
    ),
    "kafka.compression": "it is kafka.client.compression_type now; null stands for none",
    "kafka.commit_gap_ms": "it is 5 for everybody now; take it out",
    "kafka.commit_interval_ms": "it is 500 for everybody now; take it out",
    "kafka.poll_timeout_ms": "it is 200 for everybody now; take it out",
    "kafka.connect_timeout_ms": "it is 10000 for everybody now; take it out",
    "kafka.delivery_timeout_ms": "it is 60000 for everybody now; take it out",
    "kafka.recovery_timeout_ms": "it is 300000 for everybody now; take it out",
    "kafka.ssl_key_password_file": "write it as kafka.ssl_key_password: {file: PATH}",
    "kafka.sasl_password_file": "write it as kafka.sasl_password: {file: PATH}",
    "kafka.sasl_oauth_client_secret_file": "write it as kafka.sasl_oauth_client_secret: {file: PATH}",
    # The LLM judge
    "judge.llm.api_key_file": "write it as judge.llm.api_key: {file: PATH}",
    "judge.llm.api_key_env": "write it as judge.llm.api_key: {env: VARIABLE}",
    "judge.llm.attempt_timeout_ms": "take it out; judge.llm.stall_timeout_ms ends calls that fall silent",
    "judge.llm.timeout_ms": "take it out; claim_timeout_ms of the policy bounds every request",
    "judge.llm.backoff_initial_ms": _CONSTANT,
    "judge.llm.backoff_max_ms": _CONSTANT,
    "judge.llm.concurrency": "take it out; what the server can take is learned, up to max_concurrency",
    "judge.llm.stream": "write stall_timeout_ms in judge.llm itself; whether the server streams is learned",
    "judge.llm.circuit_breaker": "take it out; every model has one",
    "judge.llm.failover": _CONSTANT,
    "judge.llm.structured_output": _LEARNED,
    "judge.llm.output_tokens_field": "take it out; the judge learns the name from a refusal. For a server "
    "that ignores other names write judge.llm.extra_body: {max_tokens: NUMBER}",
    "judge.llm.seed": "write it as judge.llm.extra_body: {seed: NUMBER}",
    "judge.llm.temperature": "take it out: it is 0, and models that refuse it are sent none; for another one "
    "write judge.llm.extra_body: {temperature: NUMBER}",
    "judge.llm.reply_form": "take it out; verdicts are short texts wherever these can hold what is asked for",
    "judge.llm.passages_per_claim": _CONSTANT,
    "judge.llm.max_quotes": _CONSTANT,
    "judge.llm.verdicts": "take it out; all four verdicts are asked for, and a policy's rules choose",
    "judge.llm.conflicts": _CONSTANT,
    "judge.llm.confidence": _CONSTANT,
    "judge.llm.ask_again": _CONSTANT,
    "judge.llm.unquoted_support": "it is judge.llm.require_quotes now: true stands for unverified",
    "judge.llm.examples": "put the list into a file and name that as judge.llm.prompts.examples",
    # Classifiers
    "judge.hhem": "write what stands there under judge.classifier: kind hhem is a classifier with that "
    "preset",
    "judge.classifier.tokenizer": "take it out and put tokenizer.json into the model's folder; a preset "
    "knows its own",
    "judge.classifier.tokenizer_revision": "take it out; a preset pins the commit of its tokenizer",
    "judge.classifier.unpinned": "take it out; what comes without a pinned commit is warned of, so set "
    "revision",
    "judge.classifier.backend": "take it out; onnxruntime runs a model that has an ONNX file, torch any "
    "other",
    "judge.classifier.onnx_file": "take it out and call the file onnx/model.onnx or model.onnx",
    "judge.classifier.architecture": "take it out; it follows from the preset or from the model's "
    "config.json",
    "judge.classifier.max_length": "take it out; pairs have 512 tokens, or as many as a preset or the "
    "model's files say",
    "judge.classifier.batch_size": _CONSTANT,
    "judge.classifier.max_queued_pairs": _CONSTANT,
    "judge.classifier.overlap_tokens": _CONSTANT,
    "judge.classifier.max_windows_per_claim": "take it out; every window of the contexts is read",
    # Custom judges
    # Cascade, costs, cache
    "judge.cascade.contradiction_confidence": _CONSTANT,
    "judge.cascade.reserve_ms": _CONSTANT,
    "judge.cascade.least_call_ms": _CONSTANT,
    "judge.usage_log_interval_s": _CONSTANT,
    "judge.cache.max_entries": _CONSTANT,
    "judge.cache.version": "take it out; a restart forgets what a guard remembers, another "
    "judge.cache.signing_key what stands in Redis",
    "judge.cache.redis": "write its url as judge.cache.redis_url, user and password in it "
    "(redis://USER:PASSWORD@HOST:PORT/0, or {file: PATH}), its signing_key as judge.cache.signing_key; the "
    "rest is constant now",
    # Policies
    "policies.*.citation_pattern": "take it out and write citations in a form that is known without it, such "
    "as [ID] (docs/policies.md#citations-and-markup)",
    # Limits
    **dict.fromkeys(
        (
            "limits.max_pending_claims",
            "limits.max_claims_per_call",
            "limits.resume_at",
            "limits.overload_grace_ms",
            "limits.finished_responses_remembered",
            "limits.finished_response_ttl_ms",
            "limits.bad_record_window",
            "limits.bad_record_min",
        ),
        _CONSTANT,
    ),
}


def what_became_of(loc: tuple[str | int, ...]) -> str | None:
    """The remedy for a setting that was at ``loc`` in an earlier version; None if there was none."""
    path = tuple("*" if isinstance(part, int) else part for part in loc)
    if path[:1] == ("policies",):
        path = ("policies", "*", *path[2:])
    for section in _LIKE_LLM:
        if path[:-1] == section:
            path = (*_LLM, path[-1])
    return MOVED.get(".".join(path))
