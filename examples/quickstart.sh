#!/usr/bin/env bash
# The main scenario on this machine, without Slurm. Four workers train, one of them crashes on purpose, and all resume
# from the last snapshot. The script compares the result, bit for bit, with the result of an undisturbed run.
# It installs and builds what is missing, so a second run takes only seconds. It needs Debian 12, and the network only
# if something is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tests/support/packages.sh

install_packages "${BUILD_PACKAGES[@]}"
[[ -f build/build.ninja ]] || cmake --preset release -DDDPRUN_TESTS=OFF
cmake --build build --target ddprun train

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
steps=200 crash_at=130 crash_rank=2

# Runs one job of four workers. $1: the name of its log and snapshot folder; the rest: more options of train.
job() {
    local name=$1; shift
    local command=(build/bin/ddprun --standalone --nproc-per-node=4 build/bin/train --steps "$steps" --snapshot-every 50
        --snapshot-dir "$work/$name" "$@")
    echo "+ ${command[*]}"
    "${command[@]}" 2>&1 | tee "$work/$name.log"
}
checksum() { grep -o 'checksum=[^ ]*' "$work/$1.log" | tail -n 1; }

job calm
job crashed --crash-at-step "$crash_at" --crash-rank "$crash_rank"
calm=$(checksum calm) crashed=$(checksum crashed)
resumed=$(grep -i 'resum' "$work/crashed.log" | tail -n 1 || true)

echo
echo "1. four workers trained $steps steps undisturbed: $calm"
echo "2. in a second run rank $crash_rank crashed on purpose at step $crash_at"
echo "3. ddprun stopped all four and started them again${resumed:+: $resumed}"
echo "4. that run ended with exit code 0 too: $crashed"
if [[ $calm != "$crashed" || -z $calm ]]; then
    echo "5. the two results differ: this is a bug"
    exit 1
fi
echo "5. both results have the same bits"
