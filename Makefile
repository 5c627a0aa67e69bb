# `make help` lists what there is. Everything happens in .venv, which is made on first use.
.DEFAULT_GOAL := help
.PHONY: help demo build/demo.log install test build/test.log test-all build/test-all.log lint format types unit kafka-test kafka chaos-cluster llm-test mastra-test clients-test extras compat training-test bench lock docs docs-serve helm-docs helm-record image-root clean

BIN := .venv/bin
# Each process starts a Kafka of its own; a file's tests stay together. In their order, or those of the files with
# the fewest tests would come last, among them the longest: one process would wait for the other. Tests of Kafka and of
# whole processes wait for half of their time, so three keep two cores busy; each more collects all of them again.
PYTEST := $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder
PHASE = scripts/phase.sh $@
# What takes long and rarely breaks: real tools, frameworks, servers and pages, long runs, processes on a Kafka that fails
# or changes under them, and the tests of the tools in benchmarks/ and training/. Files with pages have other tests beside.
SLOW := $(addprefix tests/,benchmarks chat_answers chaos examples training unit/docker unit/helm unit/ops \
	$(addprefix unit/test_,machines_that_lack_something.py make.py site.py) \
	$(addprefix unit/integrations/test_,langchain.py langchain_agents.py openai_agents.py) \
	$(addprefix integration/test_,doctor.py kafka_away.py kafka_in_foreground.py kafka_needed.py one_client_beside_others.py \
	served_verifier.py shutdown.py tutorial.py))
PAGES := tests/unit/cli/test_tune.py tests/unit/evals/test_report.py
SOURCES := $(wildcard guardrail consumers tests benchmarks training examples scripts)

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# These stand for commands whose output they keep. Where one fails, make's own last line names its target: the log.
demo: build/demo.log ## Watch example answers being checked: no broker, no key, under a minute after the set-up
build/demo.log:
	@mkdir -p build && date '+started at %s, %c' >$@
	@$(PHASE) "1 of 2: what running needs, in .venv" scripts/bootstrap.sh
	@$(PHASE) "2 of 2: the demo, some 40 seconds" --draws $(BIN)/guardrail demo
	@$(PHASE) "README.md from 'Change a base URL' on, with .venv/bin in front of the commands"

install: ## Create .venv with everything the tests need
	@scripts/bootstrap.sh test

test: build/test.log ## Lint, type-check and test, on a real Kafka and a real Redis too
build/test.log:
	@mkdir -p build && date '+started at %s, %c' >$@
	@$(PHASE) "1 of 4: Python packages, in .venv" scripts/bootstrap.sh test
	@$(PHASE) "2 of 4: what the tests need besides" scripts/test-requirements.sh
	@$(PHASE) "3 of 4: style, in seconds" $(BIN)/ruff check $(SOURCES)
	@$(PHASE) "3 of 4: layout, in seconds" $(BIN)/ruff format --check $(SOURCES)
	@$(PHASE) "4 of 4: the tests, and the types beside; some ten minutes" \
		scripts/beside.sh $(BIN)/mypy --strict $(SOURCES) -- $(PYTEST) \
		--color=no -m "not browser" $(addprefix --ignore=,$(SLOW)) $(PYTEST_ARGS)
	@$(PHASE) ""

test-all: build/test-all.log ## The same, and then what is slower and rarely breaks: the chart, images, frameworks, pages
build/test-all.log: test
	@mkdir -p build && date '+started at %s, %c' >$@
	@$(PHASE) "1 of 3: what the slower tests need besides" scripts/test-requirements.sh all
	@$(PHASE) "2 of 3: pages in a browser" $(PYTEST) --color=no -m browser $(PAGES) $(PYTEST_ARGS)
	@$(PHASE) "3 of 3: the slower tests" $(PYTEST) --color=no $(SLOW) $(PYTEST_ARGS)
	@$(PHASE) ""

lint: install ## Check style
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

format: install ## Repair style
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

types: install ## Check types
	$(BIN)/mypy --strict $(SOURCES)

unit: install ## Test without Kafka
	$(PYTEST) -m "not kafka"

kafka-test: install ## Test on a real Kafka only
	@scripts/test-requirements.sh
	$(PYTEST) -m kafka

llm-test: install ## Test the LLM judge on llama.cpp's server; compiles it once, in some ten minutes
	@scripts/llama-server.sh
	$(BIN)/pytest -m real_llm tests/real_llm

mastra-test: install ## Test integrations/mastra with Mastra's packages from npm
	@scripts/mastra-test.sh

clients-test: install ## Run the programs of docs/clients.md in Node, Go and curl, and Portkey's gateway, against ours
	@scripts/clients-test.sh

extras: install ## Install the newest version of each extra, and test it there
	$(BIN)/python -m scripts.extras

compat: install ## Test each extra's oldest and newest versions by pip and uv, and write docs/compatibility.md; half an hour
	$(BIN)/python -m scripts.extras --all

training-test: install ## Test the training of the verifier; fetches PyTorch, some gigabytes
	$(BIN)/python -m pip install --quiet -e '.[training]'
	$(BIN)/pytest -m training

kafka: ## Run a Kafka on localhost:9092 (or make kafka PORT=…) until Ctrl-C, for those without Docker
	@scripts/bootstrap.sh
	@scripts/test-requirements.sh kafka
	$(BIN)/python -m tests.support.kafka_broker --port $(or $(PORT),9092)

chaos-cluster: install ## Let three Kafka brokers, guards and the network fail, and check that no reader noticed; minutes, as root for a full disk
	@scripts/test-requirements.sh kafka
	$(BIN)/python -m benchmarks.chaos --brokers 3 --responses 1000 --faults 30 --at-once 40 --rate 20

bench: install ## List the benchmarks
	@for script in $$(grep -l '__main__' benchmarks/*.py); do \
		printf '  %s -m benchmarks.%s\n' "$(BIN)/python" "$$(basename "$$script" .py)"; done

lock: install ## Write uv.lock and docker/uv.txt anew, which the image is built from
	$(BIN)/uv lock
	sed -n '1,2p' docker/uv.txt >docker/uv.txt.new
	sed -n '2s/^# //p' docker/uv.txt | $(BIN)/uv pip compile - --generate-hashes --no-header --no-annotate --quiet >>docker/uv.txt.new
	mv docker/uv.txt.new docker/uv.txt

docs: install ## Build the site of docs/ into build/site; a broken link is an error
	$(BIN)/python -m scripts.docs_site build/pages
	$(BIN)/zensical build --clean --strict

docs-serve: docs ## Build the site and show it on http://127.0.0.1:8001 until Ctrl-C
	$(BIN)/python -m http.server --directory build/site --bind 127.0.0.1 8001

helm-docs: install ## Write the chart's README from the comments of its values, its schema from the settings
	@scripts/deploy-tools.sh
	$(BIN)/python -m scripts.chart_schema
	"$${GUARDRAIL_DEPLOY_TOOLS:-$$HOME/.cache/guardrail/deploy-tools}/bin/helm-docs" --chart-search-root helm/guardrail

helm-record: install ## Record anew what the chart renders to; read the diff
	@scripts/deploy-tools.sh
	$(BIN)/python -m tests.support.helm_chart

image-root: ## Build the image without an engine and start it: root, debootstrap and buildah, minutes
	scripts/image-root.sh

clean: ## Remove .venv and caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
