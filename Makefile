# Every target works as the first command on a fresh machine: it makes .venv and installs what is needed.
PYTHON ?= python3
BIN := .venv/bin
REVIEWS := cases/reviews --wfbench-runs=3
PLUGIN := --wfbench-plugin-dir=cases/plugins/second-opinion --wfbench-plugin-version=1.2.0
ARMS := baseline,workflow,workflow_direct,candidate_workflow,candidate_workflow_direct
export LITELLM_LOCAL_MODEL_COST_MAP := True
# Without bytecode every process would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint agents bench clean setup

setup:
	@PYTHON="$(PYTHON)" sh scripts/setup.sh

demo: setup
	$(BIN)/pytest cases --wfbench-arms=$(ARMS) --wfbench-candidate-overlay=cases/overlays/leaner-work --wfbench-runs=3 -n 2
	$(BIN)/pytest $(REVIEWS) --wfbench-arms=review,candidate_review,ce_review $(PLUGIN) --wfbench-candidate-overlay=cases/overlays/sharper-review --wfbench-results=results/reviews -n 2
	$(BIN)/pytest $(REVIEWS) --wfbench-arms=review,candidate_review --wfbench-candidate-overlay=cases/overlays/trading-review --wfbench-results=results/trading -k undo --wfbench-subject=mini:replay/trading

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: setup lint
	$(BIN)/pytest tests -n 3 --dist loadfile

agents: setup
	@sh scripts/agents.sh

bench: setup
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
