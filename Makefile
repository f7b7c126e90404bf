# Every target sets up what it needs in .venv; a second run starts at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
HEADERS := build/ort-headers
NATIVE := CMakeLists.txt $(shell find ort_ep -name '*.cc' -o -name '*.h' -o -name '*.inc' -o -name '*.map' -o -name '*.cmake' -o -name CMakeLists.txt)

.PHONY: bench bench-drop-in bench-families families bench-size bench-text bench-text-large code-lm-evaluate code-lm-train demo demo-terrain demo-text kernels plugins ort-ops fidelity generations-study norm-study scenes-train soak text-caches text-full-train validate test test-fast test-native test-optimum test-ort-matrix lint clean bench-kernels

# The execution provider needs C headers of ONNX Runtime. Without them the package has no library, and says so.
$(HEADERS)/.tried:
	mkdir -p $(HEADERS)
	test -n "$(ORT_ROOT)$(ORT_INCLUDE_DIR)" || ort_ep/fetch_headers.sh $(HEADERS) || true
	touch $@

# torch comes first and pinned, so that the extras below are content with it and bring no CUDA build. The terrain model's
# package comes without its dependencies: it asks for onnxruntime-gpu, which would overwrite onnxruntime. Tests compile the
# TensorRT plugins with headers that kernel-lens brings, if no others are named; nothing else of it is used.
$(STAMP): pyproject.toml $(NATIVE) $(HEADERS)/.tried
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet "scikit-build-core>=1.0" cmake ninja
	ORT_ROOT="$${ORT_ROOT:-$(CURDIR)/$(HEADERS)/root}" PATH="$(CURDIR)/$(BIN):$$PATH" \
		$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[cpu,demo,models,trt,validate,dev]"
	$(BIN)/python -m pip install --quiet --no-deps adaptive-terrain-diffusion==0.4.2
	$(BIN)/python -m pip install --quiet --no-deps kernel-lens==2.0.1
	touch $@

# Measurements, the original model's as well, are taken with memory in huge pages; docs/benchmarks.md says what they do.
bench bench-drop-in bench-families bench-kernels bench-size bench-text bench-text-large code-lm-train demo demo-terrain demo-text generations-study norm-study scenes-train text-caches: export GLIBC_TUNABLES := glibc.malloc.hugetlb=1

# Takes about a quarter of an hour; bundles are kept in build/bench. Measure on a quiet machine.
bench: $(STAMP)
	$(BIN)/python -m retouch.validation.benchmarks --build build/bench --out out/bench --page docs/benchmarks.md

# Takes about an hour, for the exports; bundles are kept in build/families. FAMILIES=dit,flux chooses. `make families` makes
# the bundles only and may run beside other work; EARLIER=1 then measures them even if the exporter changed since. Figures
# of families that are not named stay in docs/families.json and on the page.
BENCH_FAMILIES = $(BIN)/python -m retouch.validation.benchmarks.families $(if $(FAMILIES),--families $(FAMILIES)) \
	$(if $(EARLIER),--earlier) --build build/families --page docs/families.md
bench-families: $(STAMP)
	$(BENCH_FAMILIES)

families: $(STAMP)
	$(BENCH_FAMILIES) --export-only

# Single layers and attention on the execution provider's kernels: takes about three minutes; measure on a quiet machine. ROWS=8,32
# chooses rows of layers.
bench-kernels: $(STAMP)
	$(BIN)/python -m retouch.validation.kernels $(if $(ROWS),--rows $(ROWS))
	$(BIN)/python -m retouch.validation.kernels.attention

# Exports a model of 3.4 GB twice: needs 10 GB of memory and 20 GB of disk. KINDS=torch or KINDS=onnx makes one of them (the
# second reads what the first leaves behind). Memory is measured, so other work may run beside it.
bench-size: $(STAMP)
	$(BIN)/python -m retouch.validation.size $(if $(KINDS),--kinds $(KINDS)) --build build/size --out out/size --page docs/size.md

# Takes about ten minutes; measure on a quiet machine. docs/text.md has the figures.
bench-text: $(STAMP)
	$(BIN)/python -m retouch.validation.text
	$(BIN)/python -m retouch.validation.text models/code_lm/patterns --preset quality --repeats 5
	$(BIN)/python -m retouch.validation.text models/code_lm/patterns --preset speed --repeats 5
	$(BIN)/python -m retouch.validation.text.efficiency models/code_lm/patterns --preset quality

# The same on a network of 31 million random weights, and what caches of full attention cost there: a quarter of an hour.
bench-text-large: $(STAMP)
	$(BIN)/python -m retouch.validation.text --shape llada-30m --per-read 4 --repeats 1
	$(BIN)/python -m retouch.validation.text.efficiency --shape llada-30m --per-read 4 --longest 238 --repeats 1
	$(BIN)/python -m retouch.validation.text.cost_of_caches

# Takes about ten minutes; measure on a quiet machine. CORPUS=python takes texts and a network of code, FULL=DIR another
# network, TEXTS=8 more texts.
CORPUS := patterns
FULL := build/text/full-$(CORPUS)
text-caches: $(STAMP)
	test -d $(FULL) || $(MAKE) text-full-train
	$(BIN)/python -m retouch.validation.text.caches $(FULL) --corpus $(CORPUS) $(if $(TEXTS),--texts $(TEXTS)) \
		--out out/text-caches/$(CORPUS) --page docs/full-attention-$(CORPUS).md

# The network of text-caches: about five minutes on one thread. That of patterns goes on from the network of causal blocks.
FULL_FROM := $(if $(filter patterns,$(CORPUS)),--start models/code_lm/patterns --steps 400 --length 512)
text-full-train: $(STAMP)
	$(BIN)/python -m retouch.validation.text.train_full --corpus $(CORPUS) $(FULL_FROM) --out $(FULL)

# A scene is generated and edited; SCENES=DIR takes another pipeline, such as build/scenes/pipeline.
SCENES := models/scenes/pipeline
demo: $(STAMP)
	$(BIN)/python -m retouch.validation.story --out out/demo --pipeline $(SCENES)

demo-terrain: $(STAMP)
	$(BIN)/python -m retouch.validation.demo --out out/demo-terrain

# Code is completed, and two of its spans are edited.
demo-text: $(STAMP)
	$(BIN)/python -m retouch.validation.text.demo --out out/demo-text

fidelity: $(STAMP)
	$(BIN)/python -m retouch.validation.fidelity --out out/fidelity

# Takes hours on a CPU, and goes on where it was stopped; models/scenes/README.md says what comes out.
scenes-train: $(STAMP)
	$(BIN)/python -m retouch.models.scenes.train --work build/scenes --out build/scenes/pipeline

# Edits a hundred scenes; writes the tables and the picture of docs/generations.md. Measure on a quiet machine.
generations-study: $(STAMP)
	$(BIN)/python -m retouch.validation.generations --out out/generations --write docs/generations.md

# Goes on where it was stopped; models/code_lm/README.md says what comes out. CPU minutes of the three trainings.
CODE_LM := build/code_lm
PATTERNS_MINUTES ?= 20
CAUSAL_MINUTES ?= 30
PYTHON_MINUTES ?= 60
TRAIN_CODE_LM := $(BIN)/python -m retouch.models.code_lm.train
code-lm-train: $(STAMP)
	$(TRAIN_CODE_LM) --corpus patterns --hidden 128 --layers 4 --length 288 --minutes $(PATTERNS_MINUTES) \
		--work $(CODE_LM)/patterns --out $(CODE_LM)/patterns/model
	$(TRAIN_CODE_LM) --corpus python --kind causal --minutes $(CAUSAL_MINUTES) \
		--work $(CODE_LM)/causal --out $(CODE_LM)/causal/model
	$(TRAIN_CODE_LM) --corpus python --begin $(CODE_LM)/causal/model --minutes $(PYTHON_MINUTES) \
		--work $(CODE_LM)/python --out $(CODE_LM)/python/model
	$(BIN)/python -m retouch.models.code_lm.picture patterns=$(CODE_LM)/patterns "python, next token"=$(CODE_LM)/causal \
		python=$(CODE_LM)/python -o $(CODE_LM)/training.png

code-lm-evaluate: $(STAMP)
	$(BIN)/python -m retouch.validation.text.evaluate --patterns $(CODE_LM)/patterns/model \
		--python $(CODE_LM)/python/model --causal $(CODE_LM)/causal/model

# Takes about ten minutes; writes the tables and the picture of docs/group-norm.md. Errors may be measured beside other
# work (PART=errors), times on a quiet machine only (PART=times, a minute once the bundles of the errors are there).
norm-study: $(STAMP)
	$(BIN)/python -m retouch.validation.moments --out out/norm-study --write docs/group-norm.md \
		$(if $(filter errors,$(PART)),--no-times) $(if $(filter times,$(PART)),--no-errors)

# Takes about three minutes; the report is out/validation/report/report.html.
validate: $(STAMP)
	$(BIN)/python -m retouch.validation.accuracy --out out/validation

# The tests of a file stay in one process: what a module exports for them is exported once.
test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-fast: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

# The kernels without a runtime, under sanitizers and on every instruction set. ThreadSanitizer of older compilers does not
# run where addresses are chosen from a large space, hence setarch.
test-native: $(STAMP)
	for sanitizer in address,undefined thread; do \
		folder=build/native-$${sanitizer%%,*} && \
		ORT_ROOT="$${ORT_ROOT:-$(CURDIR)/$(HEADERS)/root}" $(BIN)/cmake -S . -B $$folder -DRETOUCH_SANITIZE=$$sanitizer > /dev/null && \
		$(BIN)/cmake --build $$folder --target retouch_ort_ep_driver --parallel 2 > /dev/null && \
		for cpu in "" $(shell grep -qsw avx512f /proc/cpuinfo && echo avx512) avx2 portable; do RETOUCH_ORT_EP_CPU=$$cpu setarch -R $$folder/ort_ep/retouch_ort_ep_driver || exit 1; done || exit 1; \
	done

# The execution provider on several releases of onnxruntime, each in an environment of its own.
ORT_RELEASES ?= 1.22.1 1.23.2 1.24.4 1.28.0 1.32.0
test-ort-matrix: $(STAMP)
	tests/ort_ep/matrix.sh $(CURDIR)/$(BIN)/python build/ort-matrix $(ORT_RELEASES)

# Twenty thousand edits of a tiny UNet, whose memory must stay flat.
soak: $(STAMP)
	$(BIN)/python -m retouch.validation.soak --build build/soak

# optimum-onnx wants an older transformers than everything else, so it has an environment of its own.
OPTIMUM := .venv-optimum
$(OPTIMUM)/.installed: pyproject.toml
	test -x $(OPTIMUM)/bin/python || $(PYTHON) -m venv $(OPTIMUM)
	$(OPTIMUM)/bin/python -m pip install --quiet --upgrade pip
	$(OPTIMUM)/bin/python -m pip install --quiet torch==2.13.0
	$(OPTIMUM)/bin/python -m pip install --quiet "scikit-build-core>=1.0"
	$(OPTIMUM)/bin/python -m pip install --quiet --no-build-isolation --editable ".[cpu,optimum,dev]"
	touch $@

test-optimum: $(OPTIMUM)/.installed
	$(OPTIMUM)/bin/python -m pytest tests/plugin/drop_in

# Takes about two minutes; measure on a quiet machine.
bench-drop-in: $(OPTIMUM)/.installed
	$(OPTIMUM)/bin/python -m retouch.validation.drop_in --out out/drop-in --write docs/drop-in.md

# The CUDA kernels as a library with plain C functions, for the cards that nvcc is told of and, as PTX, for later ones.
NVCC ?= nvcc
KERNEL_CARDS ?= 75 80 86 89 90 100 120
KERNEL_LIBRARY ?= build/kernels/libretouch_kernels.so
NVCC_FLAGS := -std=c++17 -O3 -shared -Werror all-warnings -Xcompiler -Wall,-Wextra,-fPIC,-fvisibility=hidden \
	$(foreach card,$(KERNEL_CARDS),-gencode arch=compute_$(card),code=sm_$(card)) \
	-gencode arch=compute_$(lastword $(KERNEL_CARDS)),code=compute_$(lastword $(KERNEL_CARDS))
kernels:
	mkdir -p $(dir $(KERNEL_LIBRARY))
	$(NVCC) $(NVCC_FLAGS) trt_plugins/kernels/launch.cu -o $(KERNEL_LIBRARY)

# The same as plugins of TensorRT, whose headers TENSORRT_INCLUDE_DIR or TENSORRT_ROOT names; nothing is linked.
PLUGIN_LIBRARY ?= build/kernels/libretouch_trt.so
TENSORRT_INCLUDE_DIR ?= $(TENSORRT_ROOT)/include
plugins:
	test -f "$(TENSORRT_INCLUDE_DIR)/NvInferRuntime.h" || { echo "Set TENSORRT_INCLUDE_DIR or TENSORRT_ROOT." >&2; exit 1; }
	mkdir -p $(dir $(PLUGIN_LIBRARY))
	$(NVCC) $(NVCC_FLAGS) -isystem "$(TENSORRT_INCLUDE_DIR)" trt_plugins/plugins/plugin.cc trt_plugins/plugins/operators.cc \
		trt_plugins/plugins/exports.cc trt_plugins/kernels/launch.cu -o $(PLUGIN_LIBRARY)

# The same as operators of ONNX Runtime for its CUDA provider, with the headers that ORT_INCLUDE_DIR or ORT_ROOT names, or
# those that are fetched for the execution provider; nothing is linked.
OPERATOR_LIBRARY ?= build/kernels/libretouch_ort.so
ORT_FOLDERS = $(ORT_INCLUDE_DIR) $(addprefix $(if $(ORT_ROOT),$(ORT_ROOT),$(HEADERS)/root),/include /include/onnxruntime /usr/include/onnxruntime)
ort-ops: $(HEADERS)/.tried
	mkdir -p $(dir $(OPERATOR_LIBRARY))
	$(NVCC) $(NVCC_FLAGS) $(addprefix -isystem ,$(ORT_FOLDERS)) trt_plugins/ort_ops/call.cc trt_plugins/ort_ops/operators.cc \
		trt_plugins/ort_ops/exports.cc trt_plugins/kernels/launch.cu -o $(OPERATOR_LIBRARY)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	mkdir -p build && rm -rf build/typed && PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --target build/typed .
	cd build/typed && ../../$(BIN)/python -m mypy --config-file ../../pyproject.toml -p retouch

clean:
	rm -rf build out .mypy_cache .pytest_cache .ruff_cache
