# Sourced by ./run and ./test: finds or installs what Tandem is built with, and builds it. What is there
# already is not touched.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
venv=$root/.venv
tools=(scikit-build-core expecttest)  # what the tests of the Python package need
requirements=(torch==2.13.0 numpy "${tools[@]}")
packages=(build-essential cmake ninja-build ccache python3 python3-dev libgtest-dev libspdlog-dev libfmt-dev
          nlohmann-json3-dev libcli11-dev libdw-dev libssl-dev libzstd-dev libhiredis-dev redis-server
          libboost-dev graphviz librsvg2-bin llvm-19-dev zlib1g-dev)

say() { printf '%s\n' "$*"; }
fail() { say "$*" >&2; exit 1; }

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

install_packages() {
  command -v dpkg-query >/dev/null || return 0  # not Debian: CMake says what it misses
  local missing=() package
  for package in "$@"; do is_installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0

  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null ||
      fail "Some Debian packages are missing. Install them with this command and try again:
  sudo apt-get update && sudo apt-get install -y ${missing[*]}"
    as_root=(sudo -n)
  fi
  say "Installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# Prints the folder of a Python's torch when it is new enough and has its CMake files; torch itself is not
# imported, which would take seconds.
torch_of() {
  "$1" - 2>/dev/null <<'END'
import importlib.metadata, importlib.util, os, re, sys
spec = importlib.util.find_spec("torch")
version = tuple(int(part) for part in re.findall(r"\d+", importlib.metadata.version("torch"))[:2])
folder = os.path.dirname(spec.origin)
if version < (2, 11) or not os.path.isfile(os.path.join(folder, "share/cmake/Torch/TorchConfig.cmake")):
    sys.exit(1)
print(folder)
END
}

# The mark says that the environment is ours, and whether it was finished; only one that is
# ours is ever removed.
make_venv() {
  if [ -e "$venv" ] && [ ! -f "$venv/.tandem" ]; then
    fail "The Python in use has no torch >= 2.11, and neither has .venv, which was not made by this script." \
      "Install torch there, or move .venv away, and try again."
  fi
  install_packages python3-venv
  say "Making a virtual environment with ${requirements[*]}"
  rm -rf "$venv"
  mkdir "$venv"
  say making >"$venv/.tandem"
  "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${requirements[@]}"
  say ready >"$venv/.tandem"
}

# One that somebody else made counts as finished when it has a usable torch.
venv_is_usable() {
  [ "$(cat "$venv/.tandem" 2>/dev/null || say ready)" = ready ] && torch_of "$venv/bin/python" >/dev/null
}

find_torch() {
  if torch=$(torch_of "$python"); then
    python=$("$python" -c 'import sys; print(sys.executable)')
    return
  fi
  venv_is_usable || make_venv
  python=$venv/bin/python
  torch=$(torch_of "$python") ||
    fail "The virtual environment has no usable torch. Remove .venv and try again."
}

has_tools() {
  PYTHONPATH=$root/build/python-tools${PYTHONPATH:+:$PYTHONPATH} "$python" -c 'import importlib.util as u, sys
sys.exit(not all(u.find_spec(name) for name in ("scikit_build_core", "expecttest")))'
}

# An environment that is ours gets what an older one lacks; another Python is left as it is, and the tools go
# into the build folder.
add_tools() {
  [ -f "$root/build/python/tandem/_build.py" ] || return 0  # no package is built, and CMake said why
  ! has_tools || return 0
  local into=(--target "$root/build/python-tools")
  if [ "$python" = "$venv/bin/python" ] && [ -f "$venv/.tandem" ]; then into=(); fi
  say "Installing ${tools[*]}"
  "$python" -m pip install --quiet --disable-pip-version-check "${into[@]}" "${tools[@]}" ||
    fail "The tests of the Python package need ${tools[*]}." \
      "Install them into the Python in use ($python) and try again."
}

# A file that uses <torch/torch.h> takes up to 2 GB to compile.
count_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 2000000)}' /proc/meminfo)
  jobs=$((cores < memory ? cores : memory))
  [ "$jobs" -ge 1 ] || jobs=1
}

configure() {
  local wanted="$root $torch $python ${TANDEM_DEPS:-}"
  [ "$(cat "$root/build/.configured" 2>/dev/null)" != "$wanted" ] || return 0
  rm -rf "$root/build/CMakeCache.txt"
  cmake -S "$root" -B "$root/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DTorch_DIR="$torch/share/cmake/Torch" -DPython_EXECUTABLE="$python" -DTANDEM_DEPS="${TANDEM_DEPS:-}"
  say "$wanted" >"$root/build/.configured"
}

# With TANDEM_DEPS, a folder of headers, no packages are asked for.
set_up() {
  [ -n "${TANDEM_DEPS:-}" ] || install_packages "${packages[@]}"
  find_torch
  count_jobs
  configure
}

build() { cmake --build "$root/build" -j "$jobs" --target "$@"; }
