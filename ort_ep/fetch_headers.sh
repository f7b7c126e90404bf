#!/usr/bin/env bash
# Fetches the C headers of ONNX Runtime from Debian's forky suite (libonnxruntime-dev), checked against Debian's signature.
# Installs nothing. Usage: ort_ep/fetch_headers.sh DIRECTORY; afterwards ORT_ROOT=DIRECTORY/root.
set -euo pipefail

fail() {
  echo "fetch_headers: $1. The package builds without its execution provider; set ORT_INCLUDE_DIR or ORT_ROOT to build it." >&2
  exit 1
}

[ $# -eq 1 ] || fail "expected one directory"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
[ ! -e "$dir/root/usr/include/onnxruntime/onnxruntime_ep_c_api.h" ] || exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail "no apt-get and dpkg-deb on this machine"

# The machine's own Debian archive: it may be a mirror.
archive=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
  grep -v '^ *#' | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' ' || true)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -n "$archive" ] || fail "no Debian archive among the sources of apt"
[ -e "$keyring" ] || fail "no $keyring"

mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
printf 'Types: deb\nURIs: %s\nSuites: forky\nComponents: main\nSigned-By: %s\n' "$archive" "$keyring" >"$dir/forky.sources"
options=(
  -o "Dir::Etc::sourcelist=$dir/forky.sources" -o Dir::Etc::sourceparts=/dev/null
  -o "Dir::State::lists=$dir/lists" -o "Dir::Cache=$dir/cache" -o "APT::Sandbox::User=$(id -un)"
  -o Acquire::Languages=none -o Acquire::Retries=3 -o Acquire::http::Timeout=60
)
apt-get -q "${options[@]}" update || fail "apt-get update failed"
(cd "$dir" && apt-get -q "${options[@]}" download libonnxruntime-dev) || fail "libonnxruntime-dev could not be downloaded"
# Unpacked in one step, so that an interruption leaves nothing that looks complete.
dpkg-deb -x "$dir"/libonnxruntime-dev_*.deb "$dir/unpacked"
mv "$dir/unpacked" "$dir/root"
