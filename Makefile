# Shimekiri. `make demo` and `make test` need nothing but Linux and Python 3.11 or later.
.DEFAULT_GOAL := help
BIN := .venv/bin
export PYTHONDONTWRITEBYTECODE := # what is compiled is kept, or else every process of a test compiles it again
SIDE_BY_SIDE := -n 4 --dist loadfile --no-loadscope-reorder

.venv/.ready: pyproject.toml requirements.lock infra/setup.sh
	@infra/setup.sh

.PHONY: help
help: ## what there is to do
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

.PHONY: setup
setup: .venv/.ready ## install everything into .venv

.PHONY: demo
demo: setup ## a blind crossing, replayed into two live agents, twice: who stops, and where; CASE=paper: the paper's, POLICY=qed: that under this policy
	@$(BIN)/python -m infra.demo $(if $(CASE),--case '$(CASE)') $(if $(POLICY),--policy '$(POLICY)')

.PHONY: test
test: setup ## run the tests, files side by side on two cores
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE)

.PHONY: test-pythons
test-pythons: setup ## the agent's tests under every other Python found here (QUICK=1: the ones that meet the interpreter most)
	@$(BIN)/python -m infra.agent_tests pythons $(if $(QUICK),--quick)

.PHONY: test-ranges
test-ranges: setup ## the agent's tests with the lowest and the highest packages that are allowed
	@$(BIN)/python -m infra.agent_tests ranges $(if $(QUICK),--quick)

.PHONY: soak
soak: setup ## whole sweeps of what `make test` samples, for hours; SEEDS=5000: so many seeds of faults, a tenth of them of agents, resumable
ifdef SEEDS
	@mkdir -p runs
	@$(BIN)/python -m tests.simulation.faults --seeds $(SEEDS) --journal runs/faults-$$(git rev-parse --short HEAD 2>/dev/null || echo tree).jsonl
	@$(BIN)/python -m tests.simulation.agents --seeds $$(( $(SEEDS) / 10 )) --journal runs/agents-$$(git rev-parse --short HEAD 2>/dev/null || echo tree).jsonl
	@$(BIN)/python -m tests.simulation.agents.street --seeds $$(( $(SEEDS) / 10 )) --journal runs/street-$$(git rev-parse --short HEAD 2>/dev/null || echo tree).jsonl
	@$(BIN)/python -m tests.simulation.agents.sensors --seeds $$(( $(SEEDS) / 10 )) --journal runs/sensors-$$(git rev-parse --short HEAD 2>/dev/null || echo tree).jsonl
else
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m 'soak or hypothesis' --seed random
endif

.PHONY: lint
lint: setup ## format, lint, types, import rules, generated code
	@$(MAKE) --no-print-directory -j 2 --output-sync=target lint-types lint-text

.PHONY: lint-types
lint-types: setup
	@$(BIN)/mypy

.PHONY: lint-text
lint-text: setup
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/python -m infra.generate --check

.PHONY: house
house: setup ## how the packages are laid out: files, rooms, arrows between them, circles; the way of `plan` through them
	@$(BIN)/python -m infra.house

.PHONY: check
check: lint test ## all of it: lint and tests

.PHONY: bench
bench: setup ## measure against the floor; writes runs/bench.json
	@$(BIN)/python -m infra.bench

.PHONY: memory
memory: setup ## where the memory of a lone agent goes, by process and kind; as root also without what other programs share
	@$(BIN)/python -m infra.bench.agent.memory

.PHONY: bench-report
bench-report: setup ## measure reports: records, nodes, engines; an hour; writes runs/bench-report.json (RECORDS=1000000 NODES=2: less)
	@$(if $(RECORDS),RECORDS='$(RECORDS)') $(if $(NODES),NODES='$(NODES)') $(if $(ENGINES),ENGINES='$(ENGINES)') $(if $(HEAP),HEAP='$(HEAP)') $(BIN)/python -m infra.bench.report

.PHONY: score-blame
score-blame: setup ## score the causes that reports name, on constructed runs, some with real agents; minutes (SEED=7 SET=outsider)
	@$(BIN)/python -m tests.coordinator.report.blame $(if $(SEED),--seed $(SEED)) $(if $(SET),--set $(SET))

.PHONY: spark-plan
spark-plan: setup ## how Spark carries a report out, as explain prints it
	@$(BIN)/python -m infra.spark_plan

.PHONY: bench-planner
bench-planner: setup ## what the planner finds, proves and bounds, up to 1000 operators; an hour; writes runs/bench-planner.json (PART=reference: that alone)
	@$(BIN)/python -m infra.planning $(PART)

.PHONY: bench-policies
bench-policies: setup ## what scheduling policies miss on 200 random scenarios; two minutes of CPU; writes runs/bench-policies.json (FIRST=1 NUMBER=3: those seeds of each class)
	@$(BIN)/python -m infra.bench.scheduling $(or $(FIRST),7001) $(or $(NUMBER),25)

.PHONY: bench-crossing
bench-crossing: setup ## the contest at blind crossings: 500 encounters in dense traffic, six ways, four loads; three hours, goes on where it was broken off; writes runs/bench-crossing.json (ENCOUNTERS=40: less; PUBLISH=1: runs nothing, publishes them)
	@$(BIN)/python -m infra.contest $(if $(PUBLISH),--publish,--encounters $(or $(ENCOUNTERS),500))

.PHONY: bench-crossing-live
bench-crossing-live: setup ## 20 of its encounters in real time, beside their virtual twins; on a quiet machine, a quarter of an hour
	@$(BIN)/python -m infra.contest.live_twins --encounters $(or $(ENCOUNTERS),20)

.PHONY: bench-recordings
bench-recordings: setup ## the part of bench that reads a million recorded rows, and runs one ego of them (ROWS=100000: less)
	@$(if $(ROWS),ROWS='$(ROWS)') $(BIN)/python -m infra.bench.vehicles.recordings

.PHONY: endurance
endurance: setup ## ten minutes at ten times the load on two agents; writes runs/endurance.json (MINUTES=1: shorter)
	@$(BIN)/python -m infra.endurance $(if $(MINUTES),--minutes $(MINUTES))

.PHONY: chaos
chaos: setup ## as root: ten minutes of power cuts, cut links, frozen agents and full disks; every tuple counted again (MINUTES=1 SEED=7)
	@$(BIN)/python -m infra.chaos $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

.PHONY: pictures
pictures: setup ## the pictures of the docs, from both ways of the demo in virtual time; writes docs/crossing.svg, with Chromium also docs/pictures; minutes
	@$(BIN)/python -m infra.pictures

.PHONY: papers
papers: setup ## the papers' figures beside ours; writes runs/papers
	@$(BIN)/python -m infra.papers

.PHONY: ars
ars: setup ## the Autoware Reference System: plans, virtual and live runs, its KPIs; writes docs/explanation/reference_system.md; ten minutes (QUICK=1: prints less)
	@$(BIN)/python -m infra.reference_system $(if $(QUICK),--quick)

.PHONY: peers
peers: setup ## other stream processors, a bare EDF loop and ours on the same tuples; writes runs/peers.json; seven minutes on a quiet machine (ONLY='EDF streamz' SECONDS=2: less; PUBLISH=1: the page's table)
	@$(BIN)/python -m infra.peers $(if $(ONLY),--only $(ONLY)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(PUBLISH),--publish)

.PHONY: witness
witness: setup ## RECORDINGS='A.csv B.xml': which of their conflicts commonroad-crime (in .venv-witness) confirms; a second or two for each near pair
	@$(BIN)/python -m infra.second_witness $(RECORDINGS)

.PHONY: test-fresh
test-fresh: setup ## once per release, as root: set-up, demo and tests on Debian 12 and 13 with python3 only; half an hour
	@$(BIN)/python -m infra.release fresh

.PHONY: test-arm64
test-arm64: setup ## once per release, as root: agent's tests and the page for two Pis on emulated arm64; an hour
	@$(BIN)/python -m infra.release arm64

.venv-docs/.ready: requirements-docs.lock
	@echo 'installing the tools of the site into .venv-docs (60 MB)' >&2
	@$(or $(PYTHON),python3) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install --disable-pip-version-check -q --require-hashes -r requirements-docs.lock
	@touch $@

.PHONY: docs
docs: .venv-docs/.ready ## the site of docs/ in site/, strictly: a link that leads nowhere ends it
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict && echo 'open site/index.html'

.PHONY: compiled
compiled: setup ## compile the agent's hot path in place; two minutes; `make pure` removes it again
	@SHIMEKIRI_COMPILED=1 $(BIN)/python setup.py -q build_ext --inplace --parallel 2 && rm -rf build

.PHONY: pure
pure: ## remove what `make compiled` made
	@find node_agent -name '*.so' -delete

.PHONY: check-both
check-both: setup ## the agent's tests and those of simulations, with the hot path compiled in a copy; half an hour
	@$(BIN)/python -m infra.bench.compiled.compiled_copy

.PHONY: protos
protos: setup ## generate code and schemas again
	@$(BIN)/python -m infra.generate

.PHONY: wheel
wheel: setup ## the wheel that nodes install, alone in dist/
	@rm -rf build dist && umask 022 && SHIMEKIRI_COMPILED=0 SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || date +%s) \
		$(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -w dist . && rm -rf build && ls dist

.venv-release/.ready: requirements-release.lock
	@echo 'installing twine and CycloneDX into .venv-release' >&2
	@$(or $(PYTHON),python3) -m venv .venv-release
	@.venv-release/bin/python -m pip install --disable-pip-version-check -q --require-hashes -r requirements-release.lock
	@touch $@

.PHONY: release-check
release-check: setup .venv-release/.ready ## what has to hold before a release: the wheel, its metadata and SBOM, what each extra installs
	@$(BIN)/python -m infra.release.checklist

.PHONY: containers
containers: ## images of agent and coordinator, with podman or docker (PLATFORM=linux/arm64)
	@builder=$$(command -v podman || command -v docker) || { echo 'containers: neither podman nor docker is installed' >&2; exit 2; }; \
	for part in agent coordinator; do \
		$$builder build $(if $(PLATFORM),--platform '$(PLATFORM)') -f infra/containers/$$part.Containerfile -t shimekiri-$$part . || exit 1; \
	done

.PHONY: lock
lock: setup ## pin the packages again (needs uv)
	uv pip compile pyproject.toml --extra coordinator --extra report --extra vehicles --extra feed --extra connectors --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-header --no-emit-index-url --no-annotate -o requirements.lock
	uv pip compile --group pyproject.toml:docs --universal --python-version 3.11 \
		--generate-hashes --no-header --no-emit-index-url --no-annotate -o requirements-docs.lock
	uv pip compile --group pyproject.toml:release --universal --python-version 3.11 \
		--generate-hashes --no-header --no-emit-index-url --no-annotate -o requirements-release.lock

.PHONY: clean
clean: ## remove what was made here, but for runs/
	rm -rf .venv .venv-docs .venv-peers .venv-witness .venv-release site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
