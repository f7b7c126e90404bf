#!/bin/sh
# Tests of the execution provider on several releases of onnxruntime: matrix.sh PYTHON FOLDER VERSION...
# Every release has an environment below FOLDER, which takes everything but onnxruntime from that of PYTHON.
set -eu
python=$1 folder=$2
shift 2
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for version in "$@"; do
  environment=$folder/$version
  if [ ! -x "$environment/bin/python" ]; then
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --no-deps "onnxruntime==$version"
    own=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    echo "import site; site.addsitedir('$packages')" > "$own/zz_others.pth"
  fi
  echo "onnxruntime $("$environment/bin/python" -c 'import onnxruntime; print(onnxruntime.__version__)')"
  "$environment/bin/python" -m pytest -q tests/ort_ep
done
