#!/usr/bin/env bash
# Builds the preset `fuzz` with clang and lets each target run, one on each processor: three seconds, with DDPRUN_LONG=1
# ten minutes. An input that makes a target fail lies in build-fuzz/found afterwards. Put it into corpus/<target> when the bug is fixed, so
# that every build replays it.
#
#   tests/fuzz/fuzz.sh [TARGET…]     default: all of them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Debian has libFuzzer's library in a package of its own, so clang++ alone does not prove that the link works.
if ! command -v clang++ >/dev/null || ! clang++ -fsanitize=fuzzer -x c++ -o /dev/null - 2>/dev/null <<'CODE'; then
#include <cstddef>
extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, std::size_t) { return 0; }
CODE
    echo "skipped: no clang++ with libFuzzer (apt-get install clang libclang-rt-14-dev)"
    exit 77
fi
targets=("$@")
((${#targets[@]})) || targets=(agent_link collapsed_lines error_account flight_dump page_door pmi_desk progress_lines ras_answer
    store_codec store_machine
    timer_requests worker_output)
seconds=3
[[ -z ${DDPRUN_LONG:-} ]] || seconds=600

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
! command -v ccache >/dev/null || export CMAKE_CXX_COMPILER_LAUNCHER=ccache
cmake --preset fuzz >"$logs/configure" 2>&1 || { cat "$logs/configure" >&2; exit 1; }
cmake --build --preset fuzz --target "${targets[@]/%/_fuzz}"
mkdir -p build-fuzz/found
# The fuzzer writes new inputs to the first folder, which grows from run to run. The corpus of the repository is only
# read. Short inputs keep a run fast, and all limits of the targets are small. The lines that begin with # are progress.
fuzz() { # target
    mkdir -p "build-fuzz/corpus/$1"
    "build-fuzz/bin/${1}_fuzz" -max_total_time="$seconds" -max_len=2000 -timeout=10 -rss_limit_mb=1024 \
        -print_final_stats=1 -artifact_prefix=build-fuzz/found/ "build-fuzz/corpus/$1" "tests/fuzz/corpus/$1" >"$logs/$1" 2>&1
    local code=$?
    { echo "$1, $seconds s"; grep -vE '^#[0-9]+' "$logs/$1"; } >"$logs/$1.told"
    cat "$logs/$1.told" # at once, so that two of them do not mix
    return "$code"
}
export seconds logs
export -f fuzz
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz {}'
