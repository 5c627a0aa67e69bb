# `make help` lists what there is. Everything happens in .venv, which is made on first use.
.DEFAULT_GOAL := help
.PHONY: help demo build/demo.log install test build/test.log lint format types unit kafka-test kafka chaos-cluster llm-test mastra-test training-test bench lock docs docs-serve helm-docs helm-record image-root clean

BIN := .venv/bin
# Each process starts a Kafka of its own; a file's tests stay together. In their order, or those of the files with
# the fewest tests would come last, among them the longest: one process would wait for the other.
PYTEST := $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder
PHASE = scripts/phase.sh $@
