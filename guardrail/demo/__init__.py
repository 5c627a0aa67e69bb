"""The answers of ``guardrail demo``, how they are fed, and how what comes back is shown.

Nothing in here knows how the guard runs: ``guardrail.cli.demo`` puts the feed, the guard and a view together.
"""
