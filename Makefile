# Everything on a machine that has Python 3.11 or later and make.
PYTHON ?= python3
BIN = .venv/bin
# What a discovery needs, and what the checks need beside it.
INSTALLED = .venv/.installed
READY = .venv/.ready
LGF = $(BIN)/lgf

.PHONY: test discover app docs lint clean

test: lint
	# one thread each: two test processes already fill two cores
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	$(BIN)/lint-imports

# A real discovery: acceleration-only record of a forced Duffing oscillator with 5 % noise.
discover: $(INSTALLED)
	$(LGF) discover duffing --derivative 2 --order 2 --stable --initial 0,1.5 --forcing "cos(2*t)" --seconds 60 --jobs 2

# The page in the browser, for the runs in runs/.
app: $(INSTALLED)
	$(LGF) app

# The site, in site/; every link, anchor and reference is checked.
docs: $(READY)
	$(BIN)/python docs/tables.py
	$(BIN)/python -m mkdocs build --strict --quiet

$(INSTALLED): pyproject.toml
	$(PYTHON) -c "import sys; sys.exit('Python 3.11 or later is needed; say make PYTHON=...') if sys.version_info < (3, 11) else 0"
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	# what is imported is compiled to bytecode then; all of it beforehand takes half of the installation
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -e ".[app]"
	touch $(INSTALLED)

$(READY): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $(READY)

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist site
