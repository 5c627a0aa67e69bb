"""The conformance kit of agent-hooks drives our host: its model and tools are scripted, all else is the
product's.

The kit of 0.1.0b3 has vectors for incremental mediation, and neither hands the stream of their model on nor
reads what left; so does ``run`` here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agent_hooks import HostRegistry, HostSurface, InterceptionBlocked
from agent_hooks.ctk import (
    Capability,
    RunOutcome,
    RunRecord,
    Scenario,
    VectorResult,
    redact_paths,
    run_vector,
)

from guardrail.integrations.agent_hooks_host import DECLARATION, SURFACE, IncrementalHost, ModelEnd


class KitHarness:
    """Runs one vector."""

    name = "streaming-guardrail"
    tool_seam_host_error = SURFACE.tool_seam_host_error

    def __init__(self, vector: dict[str, Any]) -> None:
        self.capabilities = {Capability(each) for each in SURFACE.capabilities}
        script = vector["scenario"].get("model_script", [])
        self._replies = [each["respond"] for each in script]
        self._called: list[dict[str, Any]] = []
        self.released = ""
        self.records: list[Any] = []

    def host_surface(self) -> HostSurface:
        return SURFACE

    def declaration(self) -> dict[str, Any]:
        return {**DECLARATION, "bindings": []}

    def setup(
        self,
        scenario: Scenario,
        interceptors: list[Any],
        resolver: Any,
        mode: Any,
        composition: Any,
        identity_provider: str | None,
        redact_for_approval: list[str] | None = None,
    ) -> None:
        def fails(_: Any) -> str:
            raise RuntimeError("scripted fault")

        registry = HostRegistry.for_conformance(SURFACE).identity_provider("ctk-fault", fails)
        registry.approval_redactor("ctk-redact", lambda ctx: redact_paths(ctx, redact_for_approval or []))
        approval = {"redactor": "ctk-redact" if redact_for_approval else None}
        if resolver is not None:
            registry.approval_resolver("ctk-scripted", resolver)
            approval["resolver"] = "ctk-scripted"

        registry.kind("ctk.instance", lambda config, _: interceptors[config["index"]])
        document = {
            **self.declaration(),
            "configuration": {
                "mode": mode.value,
                "composition": composition.to_wire(),
                "identity_provider": identity_provider,
                "approval": approval,
            },
            "bindings": [
                {"id": f"i{index}", "kind": "ctk.instance", "config": {"index": index}}
                for index in range(len(interceptors))
            ],
        }
        self.setup_declared(scenario, document, registry)

    def setup_declared(self, scenario: Scenario, document: dict[str, Any], registry: HostRegistry) -> None:
        self._input = scenario.input
        self.host = IncrementalHost(
            self._model,
            tools={name: self._tool(scenario, name) for name in scenario.tools},
            declaration=document,
            registry=registry,
            records=self.records.append,
        )

    async def run(self) -> RunRecord:
        outcome = RunOutcome.COMPLETED
        try:
            async for piece in self.host.answer(self._input["content"], role=self._input["role"]):
                self.released += piece
        except InterceptionBlocked:
            outcome = RunOutcome.BLOCKED
        return RunRecord(
            outcome=outcome,
            final_output=self.released if outcome is RunOutcome.COMPLETED else None,
            tool_invocations=self._called,
            identities=[(each.input_identity, each.enforced_identity) for each in self.records],
            records=[each.to_wire() for each in self.records],
        )

    def teardown(self) -> None:
        pass

    async def _model(self, _: list[dict[str, Any]]) -> AsyncIterator[str | ModelEnd]:
        reply = self._replies.pop(0)
        for text in reply.get("stream") or [reply["content"]]:
            if text is not None:
                yield text
        if not reply.get("stream_truncated"):
            yield ModelEnd(reply["finish_reason"], reply["tool_calls"])

    def _tool(self, scenario: Scenario, name: str) -> Any:
        async def call(args: dict[str, Any]) -> Any:
            value, is_error = scenario.tools[name].invoke(args)
            self._called.append({"name": name, "args": args})
            assert not is_error
            return value

        return call


def ran(vector: dict[str, Any]) -> tuple[VectorResult, KitHarness]:
    """What the kit says of a vector, and the harness that ran it."""
    harness = KitHarness(vector)
    return asyncio.run(run_vector(harness, vector)), harness
