"""The golden corpus: answers in, and every record that a guard wrote about them, field by field.

It freezes behaviour, good or not: a change that is not meant to change any shows here what it changed all
the same. ``cases/*.yaml`` are the inputs, a file a group; with those of the demo, ``tests/chat_answers``
(the part for development) and ``tests/verifier_cases``. ``expected/*.jsonl`` is what comes out, a record a
line, shortened by ``normal.py`` without losing anything but what ``normal.py`` names.

``python -m tests.golden.record [GROUP …]`` writes ``expected/`` anew. That is right only for a change that
is meant to change what the guard says: its commit then holds the new expectation, and says why it differs.
Never to get a refactoring green.

Another processor reckons otherwise (``benchmarks.instruction_sets``). So probabilities may differ within a
tolerance, everything else may not, and no case stands so near to a line that it could: each is run once more
with every probability of the verifier moved (``replay.moved_probabilities``), and nothing else may change. Of
the two samples ``record`` leaves out what stands too near; what is written as a case has to be written more
clearly.

Groups run in a process of their own (``still.py``): a guard as ``guardrail run`` starts it, on the broker in
memory, with judges built from settings. Language models and judges of one's own are played by a server over
HTTP with fixed replies, so nothing here knows a protocol inside the guard.
"""
