# Sourced by ./check and ./try, from the root of the tree: installs missing packages, configures, builds.
#
# Prints each step before it runs, and its time afterwards. The first failure ends the script with a line that names the
# step. The caller may set BUILD_DIR (default build).
set -euo pipefail
BUILD_DIR=${BUILD_DIR:-build}
JOBS=$(nproc)
STEP_TIMES=()
# ccache's results for this tree then also serve a clone in another folder.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
# Depend mode takes the headers from the compiler's dependency file. It saves the preprocessor's run on every miss.
export CCACHE_DEPEND=1
# OpenBLAS uses its slowest kernels on an unknown processor. The simulated cuBLAS would then dominate a trainer's time.
if grep -qw avx2 /proc/cpuinfo 2> /dev/null && grep -qw fma /proc/cpuinfo; then
  export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-Haswell}
fi

say() { printf '\n== %s\n' "$*"; }

# step NAME COMMAND...: runs the command and records its wall time.
step() {
  local name=$1 begin=$SECONDS
  shift
  say "$name"
  if ! "$@"; then
    printf '\n%s: failed after %d s\n' "$name" $((SECONDS - begin))
    exit 1
  fi
  STEP_TIMES+=("$(printf '%5d s  %s' $((SECONDS - begin)) "$name")")
}

print_step_times() {
  say "wall time of each step"
  printf '%s\n' "${STEP_TIMES[@]}"
}

# "kubernetes-client|kubectl": the package, unless there is such a program already.
missing_packages() { # LIST
  local package
  while read -r package _; do
    case $package in '' | '#'*) continue ;; esac
    case $package in *'|'*) command -v "${package#*|}" > /dev/null && continue ;; esac
    package=${package%|*}
    dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || echo "$package"
  done < "$1"
}

install_packages() { # [LIST]
  local list=${1:-tools/packages.txt}
  if ! command -v apt-get > /dev/null; then
    echo "This is no Debian or Ubuntu (no apt-get). Install the equivalents of $list by hand;"
    echo "going on with what is here."
    return 0
  fi
  local missing as_root=""
  missing=$(missing_packages "$list" | tr '\n' ' ')
  if [ -z "$missing" ]; then
    echo "nothing is missing"
    return 0
  fi
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo > /dev/null; then
      echo "Missing packages: $missing"
      echo "Installing them needs root, and there is no sudo. As root, run:"
      echo "  apt-get update && apt-get install -y --no-install-recommends $missing"
      return 1
    fi
    as_root=sudo
  fi
  echo "installing: $missing"
  $as_root apt-get update -qq
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
}

configure() {
  cmake -S . -B "$BUILD_DIR" -G Ninja "$@"
}

build() {
  ninja -C "$BUILD_DIR" -j "$JOBS"
}

build_for_operators() {
  ninja -C "$BUILD_DIR" -j "$JOBS" agent/all cli/all deploy/slurm/all deploy/kubernetes/all lib/libspillway.so simulator/all tests/workloads/all
}

build_for_pytorch() {
  ninja -C "$BUILD_DIR" -j "$JOBS" cli/all lib/libspillway.so simulator/all
}
