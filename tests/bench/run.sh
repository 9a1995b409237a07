#!/usr/bin/env bash
# All figures of ddprun beside its peers, on this machine, in one run: a table with goals, ratios and what became of
# each goal.
#
#   tests/bench/run.sh                 about 16 minutes on two cores
#   tests/bench/run.sh --quick         less than 4: fewer samples, smaller sizes
#   tests/bench/run.sh --json FILE     all samples and verdicts for programs
#   tests/bench/run.sh --plots FOLDER  the plots, as PNG
#   tests/bench/run.sh --results       writes RESULTS.md and RESULTS.json with machine and date, and the plots
#   tests/bench/run.sh --only start,store   some measures (README.md)
#
# It installs what is missing (Debian packages; PyTorch with pip, 3 GB to download) and builds first, which is not in
# those times. As root, else what needs namespaces or Slurm is left out with a note. Exit code: 0 if all was measured,
# 1 if a measure broke. A goal that is missed is a result, and no failure.
#
# BENCH_BIN, BENCH_TESTS: folders with programs that are built already (build/bin, build/tests). BENCH_TORCH: a virtual
# environment with torch. BENCH_DISK: a folder on the disk to be measured.
set -euo pipefail
caller=$PWD # relative paths of the options and variables are the caller's
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
source tests/support/packages.sh
source tests/support/torch_venv.sh

case " $* " in *" --help "* | *" -h "*) sed -n '2,19p' "$root/tests/bench/run.sh" | sed 's/^# \{0,1\}//'; exit ;; esac

install_packages "${BUILD_PACKAGES[@]}" gcc
# Without the rest the subjects that need it are left out, and the table says which.
install_packages "${BENCH_PACKAGES[@]}" || echo "some peers cannot be installed; they are left out" >&2
[[ -n ${BENCH_TORCH:-} ]] || install_current_torch || echo "PyTorch cannot be installed; it is left out" >&2

if [[ -z ${BENCH_BIN:-} ]]; then
    cmake --preset release -DDDPRUN_TESTS=ON >/dev/null
    cmake --build --preset release --target ddprun ddpctl trainer_tool store_serve store_echo link_nodes gpt
    # With libtorch, which is in the PyTorch that has just come.
    cmake --build --preset release --target gpt_torch mnist 2>/dev/null || true
fi
from_caller() { (cd "$caller" && realpath -s "$1"); }
bin=$root/build/bin tests=$root/build/tests venv=$root/build/torch-venv
[[ -z ${BENCH_BIN:-} ]] || bin=$(from_caller "$BENCH_BIN")
[[ -z ${BENCH_TESTS:-} ]] || tests=$(from_caller "$BENCH_TESTS")
[[ -z ${BENCH_TORCH:-} ]] || venv=$(from_caller "$BENCH_TORCH")
export DDPRUN=$bin/ddprun DDPCTL=$bin/ddpctl TRAINER_TOOL=$bin/trainer_tool
export BENCH_TESTS=$tests LINK_NODES=$tests/link_nodes
if [[ -x $venv/bin/python ]]; then export PT_PYTHON=$venv/bin/python TORCHRUN=$venv/bin/torchrun; fi
# As many as 10,000 nodes in one process; what the limit does not allow is left out.
ulimit -Hn 65536 2>/dev/null || true
# Debian's Python, because its matplotlib comes from a package.
cd "$caller"
exec /usr/bin/python3 "$root/tests/bench/run.py" "$@"
