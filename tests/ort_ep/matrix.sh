#!/bin/sh
# Tests of the execution provider on several releases of onnxruntime: matrix.sh PYTHON FOLDER VERSION...
# Every release has an environment below FOLDER, which takes everything but onnxruntime from that of PYTHON. Before 1.24 an
# execution provider could bring no kernels: there bundles run on stock kernels, and the reason is tested.
set -eu
python=$1 folder=$2
shift 2
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for version in "$@"; do
  environment=$folder/$version
  if [ ! -f "$environment/.ready" ]; then
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --no-deps "onnxruntime==$version"
    own=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    echo "import site; site.addsitedir('$packages')" > "$own/zz_others.pth"
    touch "$environment/.ready"
  fi
  echo "onnxruntime $("$environment/bin/python" -c 'import onnxruntime; print(onnxruntime.__version__)')"
  case $version in
    1.2[0-3].*) required=0 ;;
    *) required=1 ;;
  esac
  RETOUCH_REQUIRE_ORT_EP=$required "$environment/bin/python" -m pytest -q tests/ort_ep
done
