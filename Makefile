# SPDX-License-Identifier: Apache-2.0
# Everything sets itself up: see dev/bootstrap.py (environment) and npu/cli (commands).

SIM ?= verilator
TESTCASE ?=
BLOCK ?=
BLOCKS ?=
PROOF ?=
ECP5 ?=
RAISE ?=
POINTS ?=
SEED ?= 1
SEEDS ?=
FULL ?=
DEBUG ?=
CONFIG ?=
ARRAY_DIM ?=
MODEL ?= weights/checkpoints/gpt2-tiny
PROMPT ?= The parser accepts
PROMPTS ?=
BATCH ?=
SPECULATE ?=
QUESTION ?=
SYSTEM ?=
WEIGHTS ?= int8
ACCEPT_LOSS ?=
CONTEXT ?=
PROGRAM ?= generate
INPUT ?=
TOKENS ?= 48
TEMPERATURE ?= 0
TOP_K ?= 0
ON ?= rtl
TIER ?= full
FILTER ?=
LIST ?=
COV ?=
HOSTILE ?=
MEMORY ?=
KEEP ?=
RESUME ?=
DRAFT ?=
CHANGED ?=
SHARD ?=
SCHEDULER ?=
TOGETHER ?=
SKIPPED ?=
COUNT ?=
DRAW ?=
MUTANTS ?=
COMMON ?=
PORT ?=
ifeq ($(origin JOBS),undefined)
JOBS := $(shell nproc 2>/dev/null || echo 1)
endif
PYTHON ?= python3
VENV := .venv/bin/python

# What a user gives is text, neither make's nor the shell's to read: each is taken as it stands and
# reaches the commands through the environment, as "$$NAME".
GIVEN := SIM TESTCASE BLOCK BLOCKS PROOF ECP5 RAISE POINTS SEED SEEDS FULL DEBUG CONFIG ARRAY_DIM MODEL PROMPT PROMPTS BATCH SPECULATE QUESTION \
  SYSTEM WEIGHTS ACCEPT_LOSS CONTEXT PROGRAM INPUT TOKENS TEMPERATURE TOP_K ON TIER FILTER LIST COV HOSTILE MEMORY KEEP \
  COUNT DRAW MUTANTS COMMON PORT DRAFT RESUME CHANGED SHARD SCHEDULER TOGETHER SKIPPED JOBS PYTHON VENV
$(foreach name,$(GIVEN),$(eval override $(name) := $$(value $(name))))
export $(GIVEN)
# What leads a Python away from its packages, takes its assertions out, or has it compile every file
# again in every process (some containers set that: 27 s for each collection of the tests, not 8).
unexport PYTHONHOME PYTHONPATH PYTHONPLATLIBDIR PYTHONSAFEPATH PYTHONINSPECT PYTHONOPTIMIZE
unexport PYTHONDONTWRITEBYTECODE
unexport PIP_PREFIX PIP_REQUIRE_VIRTUALENV PIP_ROOT PIP_TARGET PIP_USER
# A make above this one must not lend its flags to the makefiles that Verilator writes.
unexport MAKEFLAGS MAKELEVEL

CLI = "$$VENV" -m npu.cli $(if $(DEBUG),--debug)
# ARRAY_DIM=8 is short for CONFIG=a8.
CHIP = $(if $(ARRAY_DIM),--config "a$$ARRAY_DIM",$(if $(CONFIG),--config "$$CONFIG"))
RUN_OPTIONS = --sim "$$SIM" $(CHIP) --seed "$$SEED" -j "$$JOBS"

ACCEPT = $(if $(ACCEPT_LOSS),--accept-loss)
ROOM = $(if $(CONTEXT),--context "$$CONTEXT")
WRITING = --weights "$$WEIGHTS" --tokens "$$TOKENS" --temperature "$$TEMPERATURE" --top-k "$$TOP_K" \
  --seed "$$SEED" --on "$$ON" $(CHIP) $(ACCEPT) $(ROOM) $(if $(BATCH),--batch "$$BATCH") $(if $(SPECULATE),--speculate "$$SPECULATE")

# What tests need, but for whole frameworks (make oracles); about a minute to install, 850 MB.
TEST_GROUPS = cluster emulator graphs ip report synth
SUITE_GROUPS = published sentences
ORACLE_GROUPS = metrics oracles published
REGRESS_OPTIONS = $(if $(SEEDS),--seeds "$$SEEDS") --filter "$$FILTER" --shard "$$SHARD" \
  --changed "$$CHANGED" --scheduler "$$SCHEDULER" --hostile "$${HOSTILE:-0}" \
  $(if $(MEMORY),--memory "$$MEMORY") \
  $(if $(LIST),--list) $(if $(COV),--cov) $(if $(RESUME),--resume)

.DEFAULT_GOAL := $(if $(TESTCASE),run,help)
.PHONY: help setup run unit test generate chat profile soc bench bench-docs synth formal lockstep timing power fpga ip release oracles quality regress coverage report nightly faults mutation waves lint format gen list clean

help: ## show this list
	@echo "usage: make [SIM=verilator] TESTCASE=name[,name...]   or   make TARGET"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile
	@echo "variables: TESTCASE= SEED=1 SEEDS=1 FULL= HOSTILE= MEMORY= (ddr4, lpddr4) KEEP= CONFIG=a16 (a4, a8, a32, a16-int8) JOBS=$$JOBS DEBUG= PYTHON=python3"

setup: ## check the system's tools and fill .venv (every other target does this by itself)
	@command -v "$$PYTHON" >/dev/null || \
	  { echo "setup: python3 is missing: install the Debian package python3" >&2; exit 2; }
	@"$$PYTHON" dev/bootstrap.py

run: setup ## run the tests named by TESTCASE (exact names, comma list)
	@$(CLI) test $(RUN_OPTIONS) --seeds "$${SEEDS:-1}" $(if $(FULL),--full) \
	  --hostile "$${HOSTILE:-0}" $(if $(MEMORY),--memory "$$MEMORY") --keep "$$KEEP" \
	  $(if $(TOGETHER),--together) "$$TESTCASE"

unit: setup ## run the benches of single blocks: BLOCK= (names, comma list; default all) [TESTCASE=]
	@$(CLI) unit $(RUN_OPTIONS) --seeds "$${SEEDS:-1}" $(if $(FULL),--full) \
	  --keep "$$KEEP" $(if $(TOGETHER),--together) --tests "$$TESTCASE" "$$BLOCK"

test: ## run all tests: those on the RTL (TIER=smoke), then those of pytest (SKIPPED=1: those skipped before)
	@"$$PYTHON" dev/bootstrap.py $(TEST_GROUPS)
	@$(if $(SKIPPED),,$(CLI) regress smoke $(RUN_OPTIONS))
	@$(CLI) pytest $(RUN_OPTIONS) $(if $(SKIPPED),--skipped)

generate: setup ## let a model write: MODEL= (folder or hub id) PROMPT= (or PROMPTS=, a file with one a line) [BATCH= SPECULATE= WEIGHTS= ACCEPT_LOSS= CONTEXT= TOKENS= TEMPERATURE= TOP_K= SEED= ON=]
	@$(CLI) generate "$$MODEL" $(if $(PROMPTS),--prompts "$$PROMPTS",--prompt="$$PROMPT") $(WRITING)

chat: setup ## let a model answer: MODEL= QUESTION= (or PROMPTS=) [SYSTEM= and the options of generate]
	@$(CLI) chat "$$MODEL" $(if $(SYSTEM),--system="$$SYSTEM") $(WRITING) \
	  $(if $(PROMPTS),--prompts "$$PROMPTS",-- "$$QUESTION")

profile: ## where the cycles of a decode step go: MODEL= PROMPT= [WEIGHTS= CONTEXT=]; build/reports/profile
	@"$$PYTHON" dev/bootstrap.py bench graphs
	@$(CLI) profile "$$MODEL" --prompt="$$PROMPT" --weights "$$WEIGHTS" $(ACCEPT) $(ROOM)

soc: setup ## run a program on a RISC-V core beside the chip: PROGRAM= (name or ELF file) [MODEL= PROMPT= INPUT=]
	@$(CLI) soc "$$PROGRAM" --model "$$MODEL" --prompt="$$PROMPT" --tokens "$$TOKENS" --input="$$INPUT" \
	  $(ACCEPT)

bench: ## run the benchmarks: table, bench.json, roofline, timelines in build/reports (TIER=smoke: without the long ones; TIER=names: those)
	@"$$PYTHON" dev/bootstrap.py bench graphs
	@$(CLI) bench "$$TIER" -j "$$JOBS"

bench-docs: ## put the last bench run into docs/performance.md and lower the bars (RAISE=names)
	@"$$PYTHON" dev/bootstrap.py bench graphs
	@$(CLI) bench-docs --raise "$$RAISE"

oracles: ## run the checks against PyTorch and transformers (installs PyTorch)
	@"$$PYTHON" dev/bootstrap.py $(ORACLE_GROUPS)
	@OMP_NUM_THREADS=1 "$$VENV" -m pytest -n "$$JOBS" --dist worksteal -o addopts=--import-mode=importlib -q \
	  tests/oracles

quality: ## bits per byte and top-1 of the integer networks against float32 (installs PyTorch; TIER=smoke: less)
	@"$$PYTHON" dev/bootstrap.py oracles
	@$(CLI) quality --tier "$$TIER"

regress: ## run a tier of tests in full: TIER= (smoke, full, nightly) [FILTER= SEEDS= COV= CHANGED= SCHEDULER= ...]
	@"$$PYTHON" dev/bootstrap.py $(TEST_GROUPS) $(SUITE_GROUPS)
	@$(CLI) regress "$$TIER" $(RUN_OPTIONS) $(REGRESS_OPTIONS)

coverage: setup ## say which points of the plan the last regression has met, and what is missing (POINTS= names)
	@$(CLI) coverage "$$POINTS"

report: setup ## write build/reports/index.html, one page with all results that there are
	@$(CLI) report

nightly: ## what takes minutes: all benchmarks, ResNet-50 on the RTL against golden and its bar
	@"$$PYTHON" dev/bootstrap.py bench $(TEST_GROUPS) $(SUITE_GROUPS)
	@$(CLI) bench full -j "$$JOBS"
	@$(CLI) bench nightly -j "$$JOBS"
	@NIGHTLY=1 "$$VENV" -m pytest -o addopts=--import-mode=importlib -q tests/suites

faults: setup ## plant all faults of faults/ in one model; each must turn its test red
	@$(CLI) faults $(RUN_OPTIONS)

mutation: ## draw small faults of the RTL and say which no test notices: [COUNT=600 DRAW=commit CHANGED=main MUTANTS=names SEEDS=]; COMMON=1: of the common sources
	@"$$PYTHON" dev/bootstrap.py $(TEST_GROUPS)
	@$(CLI) mutation $(RUN_OPTIONS) $(if $(SEEDS),--seeds "$$SEEDS") $(if $(COUNT),--count "$$COUNT") \
	  --draw "$$DRAW" --changed "$$CHANGED" $(if $(COMMON),--common) "$$MUTANTS"

waves: setup ## record the waves of TESTCASE, of a block too: build/waves/NAME.fst and NAME.gtkw
	@$(CLI) waves $(RUN_OPTIONS) $(if $(FULL),--full) --keep "$$KEEP" "$$TESTCASE"

synth: ## synthesise every block with yosys; LUT, FF, DSP, memory bits (BLOCKS= names, comma list)
	@"$$PYTHON" dev/bootstrap.py synth
	@$(CLI) synth -j "$$JOBS" "$$BLOCKS"

formal: ## prove rules of control and protocols for all time, each with a fault that is refuted (PROOF= names)
	@"$$PYTHON" dev/bootstrap.py synth
	@$(CLI) formal -j "$$JOBS" "$$PROOF"

lockstep: ## run the netlist of array 4 beside its RTL, every output in every cycle (TESTCASE= names SEED=1)
	@"$$PYTHON" dev/bootstrap.py synth
	@$(CLI) lockstep --seed "$$SEED" "$$TESTCASE"

timing: ## levels of logic of every block and of whole chips, against bars (BLOCKS= names; ECP5=1: on that FPGA, too)
	@"$$PYTHON" dev/bootstrap.py synth $(if $(ECP5),ecp5)
	@$(CLI) timing -j "$$JOBS" $(if $(ECP5),--ecp5) "$$BLOCKS"

power: ## energy of a token by engine and format, of a MAC, of an idle row (BLOCKS= engines; MODEL= gpt2-tiny, llama-tiny)
	@"$$PYTHON" dev/bootstrap.py bench graphs synth
	@$(CLI) power --model "$$MODEL" $(CHIP) "$$BLOCKS"

fpga: ## a chip on an ECP5 board: self test over the simulated UART, bitstream, clock (CONFIG=a4; PORT=/dev/ttyUSB1: self test there)
	@"$$PYTHON" dev/bootstrap.py $(if $(PORT),,synth ecp5)
	@$(CLI) fpga $(CHIP) --port "$$PORT"

ip: ## pack a chip for other tools and a SoC: archive in build/ip (CONFIG=a16)
	@"$$PYTHON" dev/bootstrap.py ip
	@$(CLI) ip $(CHIP)

release: ## pack a release: archives of all configurations, wheel, changes, page of results (DRAFT=1: whatever is missing)
	@"$$PYTHON" dev/bootstrap.py ip
	@$(CLI) release $(if $(DRAFT),--draft)

lint: ## check style and types of SystemVerilog and Python, import rules, generated files
	@"$$PYTHON" dev/bootstrap.py lint
	@$(CLI) lint

format: ## format SystemVerilog and Python in place
	@"$$PYTHON" dev/bootstrap.py lint
	@$(CLI) format

gen: setup ## make the generated files
	@$(CLI) gen

list: setup ## list the tests on the RTL
	@$(CLI) test --list

clean: ## remove everything built, but not .venv
	rm -rf build
