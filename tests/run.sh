#!/usr/bin/env bash
# All tests of the project; installs what is missing and builds first.
#
#   tests/run.sh              everything that fits a normal run
#   tests/run.sh --long       more seeds of the simulator, and what else takes longer
#   tests/run.sh --sanitize   core and shell tests under asan and ubsan, shell tests under tsan
#   tests/run.sh --changed [BASE]
#                             builds and runs what a change since BASE (main, where this branch left it) touches, and
#                             prints what it leaves out and why (tests/changed/touched.py)
#
# Without root, Slurm or torch the tests that need them are skipped with a reason. With CI=true nothing may be skipped
# (but tests of a GPU, for there is none), warnings are errors, and the current PyTorch is installed with pip for its
# test (3 GB to download, 5 on disk); otherwise that happens with --long only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tests/support/packages.sh
source tests/support/torch_venv.sh

mode=${1:-}
case $mode in
    '' | --long | --sanitize | --changed) ;;
    *) sed -n '2,13p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
esac
ci=${CI:-false}
[[ $ci == true ]] && werror=ON || werror=OFF
[[ $mode == --sanitize ]] && packages=(libgtest-dev libgmock-dev procps util-linux) || packages=("${TEST_PACKAGES[@]}")

install_packages "${BUILD_PACKAGES[@]}" libgtest-dev libgmock-dev
# Without the rest the tests that need it are skipped; in CI that is an error.
install_packages "${packages[@]}" || [[ $ci != true ]]

# Prints ctest's closing line again, where it is seen, and fails for what was skipped in CI: folder, log, ctest's code.
close() {
    local folder=$1 log=$2 code=$3 skipped
    # Whole tests that ended with 77, and single tests of a GoogleTest program.
    skipped=$({ grep -E '\*\*\*Skipped|\*\*\*Not Run' "$log"
        grep -E '^\[  SKIPPED \] [^ ]+\.[^ ]+$' "$folder/Testing/Temporary/LastTest.log" | sort -u; } || true)
    [[ -z $skipped ]] || printf 'skipped in %s:\n%s\n' "$folder" "$skipped"
    grep -E '^[0-9]+% tests passed' "$log" || true
    if [[ $ci == true ]] && grep -v '^$' <<<"$skipped" | grep -qviE 'gpu|cuda|nccl'; then
        echo "CI=true: nothing may be skipped"
        ((code)) || code=1
    fi
    return "$code"
}

# Where ccache is installed, another clone of the same sources compiles little: paths below this folder do not count.
launcher=()
if command -v ccache >/dev/null; then
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi

configure() { # preset
    local errors=$werror
    # g++ 12 sees things in instrumented code that are not there; warnings are the release build's business.
    [[ $1 == release ]] || errors=OFF
    cmake --preset "$1" -DDDPRUN_TESTS=ON -DDDPRUN_WERROR="$errors" "${launcher[@]}" >"$logs/configure" 2>&1 ||
        { cat "$logs/configure" >&2; return 1; }
}

# Runs ctest in a folder with a command in front of it: folder, command…, --, options of ctest.
check() {
    local folder=$1 front=() code=0; shift
    while [[ $1 != -- ]]; do front+=("$1"); shift; done
    shift
    "${front[@]}" ctest --test-dir "$folder" -j2 --output-on-failure "$@" | tee "$logs/$folder" || code=$?
    close "$folder" "$logs/$folder" "$code"
}

# The programs of a folder's tests with these labels: a test is called as the target that makes its program (ddprun_test).
programs_of_tests() { # folder, labels
    comm -12 <(ctest --test-dir "$1" -N -L "$2" | sed -n 's/^ *Test *#[0-9]*: //p' | sort -u) \
        <(ninja -C "$1" -t targets all | sed 's/: [^:]*$//' | sort -u)
}

sanitize() {
    local preset front programs labels code=0
    export DDPRUN_SEEDS=${DDPRUN_SEEDS:-100} # of the simulator, which is some ten times slower then
    for preset in asan tsan; do
        # A long history, so that the other side of a race has a stack and a suppression can find it.
        front=(env "TSAN_OPTIONS=suppressions=$PWD/tests/support/tsan.supp history_size=7")
        # gcc's thread sanitizer does not know the address layouts of newer kernels ("unexpected memory mapping").
        if [[ $preset == tsan ]] && setarch "$(uname -m)" -R true 2>/dev/null; then front+=(setarch "$(uname -m)" -R); fi
        # What core tests try has no threads: the test core_is_pure sees to that.
        [[ $preset == tsan ]] && labels=shell || labels='core|shell'
        configure "$preset" || return
        mapfile -t programs < <(programs_of_tests "build-$preset" "$labels")
        cmake --build --preset "$preset" --target "${programs[@]}" || return
        check "build-$preset" "${front[@]}" -- -L "$labels" || code=$?
    done
    return "$code"
}

# Libraries for training on top of that PyTorch, as PyPI has them now, and those of November 2025
# (tests/e2e/warm_programs.sh, framework_stop.sh, slurm_frameworks.sh).
install_programs() {
    install_on_torch programs-venv lightning transformers accelerate pytorch-ignite &&
        install_on_torch programs-old-venv lightning==2.5.6 accelerate==1.11.0
}
install_on_torch() {
    local venv=build/$1 torch=$PWD/build/torch-venv
    # The mark has the list, so that a longer one is installed as well.
    [[ $(cat "$venv/complete" 2>/dev/null) == "${*:2}" ]] && return 0
    rm -rf "$venv"
    /usr/bin/python3 -m venv "$venv" || return
    "$torch/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
        >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth" || return
    "$venv/bin/pip" install --quiet "${@:2}" && echo "${*:2}" >"$venv/complete"
}

# What looks at the Python wheel (tests/releases/packages.sh).
install_auditwheel() {
    local venv=build/auditwheel-venv
    [[ -x $venv/bin/auditwheel ]] && return 0
    /usr/bin/python3 -m venv "$venv" && "$venv/bin/pip" install --quiet auditwheel
}

# Builds and runs what differs from a commit, with what is not committed yet: commit.
changed() {
    local since files selected programs
    since=$(git merge-base "${1:-main}" HEAD) ||
        { echo "--changed: HEAD has no commit in common with ${1:-main}; name another BASE" >&2; return 2; }
    mapfile -t files < <({ git diff --name-only "$since" && git ls-files --others --exclude-standard; } | sort -u)
    echo "changed since $(git rev-parse --short "$since"): ${files[*]:-nothing}"
    configure release || return
    selected=$(python3 tests/changed/touched.py build "${files[@]}") || return
    [[ -n $selected ]] || return 0
    mapfile -t programs < <(sed -n 's/^build //p' <<<"$selected")
    ((${#programs[@]} == 0)) || cmake --build --preset release --target "${programs[@]}" || return
    check build env -- -LE long -R "^($(sed -n 's/^test //p' <<<"$selected" | paste -sd '|'))\$"
}

logs=$(mktemp -d)
leave_out=(-LE long) # options of ctest
torch="" # process that installs it
trap 'rm -rf "$logs"; [[ -z $torch ]] || kill "$torch" 2>/dev/null || true' EXIT
if [[ $mode == --sanitize ]]; then
    sanitize
    exit
fi
if [[ $mode == --changed ]]; then
    changed "${2:-}"
    exit
fi
configure release
# The download takes the network's time, and the build the processors'.
if [[ $mode == --long || $ci == true ]]; then install_current_torch & torch=$!; fi
cmake --build --preset release
[[ -z $torch ]] || wait "$torch" || echo "the current PyTorch could not be installed" >&2
# trainer/torch is built with the libtorch that has come meanwhile.
[[ -z $torch ]] || { configure release && cmake --build --preset release; }
torch=""
install_auditwheel || echo "auditwheel could not be installed" >&2
if [[ $mode == --long ]]; then
    leave_out=()
    install_programs || echo "Lightning, transformers and accelerate could not be installed" >&2
    export DDPRUN_LONG=1 DDPRUN_SEEDS=${DDPRUN_SEEDS:-10000}
fi
check build env -- "${leave_out[@]}"
