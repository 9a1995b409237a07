#!/usr/bin/env bash
# The main scenario on this machine, without Slurm. Four workers train, one of them crashes on purpose, and all resume
# from the last snapshot. The script compares the result, bit for bit, with the result of an undisturbed run.
# With --pytorch the training is examples/python/ddp_resume.py, a PyTorch script to copy, with two workers.
# It installs and builds what is missing, so a second run takes only seconds. A ddprun that is on the PATH (of a package
# or a wheel) is not built; --pytorch builds nothing else. A build needs Debian 12, and the network only if a package is
# missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tests/support/packages.sh

case ${1-} in
    '' | --pytorch) ;;
    *) echo "usage: examples/quickstart.sh [--pytorch]" >&2; exit 2 ;;
esac
# The first Python here that has PyTorch: that of the user's environment, else Debian's.
python_with_torch() {
    local python
    for python in ${VIRTUAL_ENV:+"$VIRTUAL_ENV/bin/python3"} python3 /usr/bin/python3; do
        if "$python" -c 'import torch.distributed' 2>/dev/null; then echo "$python"; return; fi
    done
    echo "no PyTorch found; install it with apt-get install python3-torch, or with pip in a virtual environment" >&2
    return 1
}
if [[ ${1-} == --pytorch ]]; then
    python=$(python_with_torch) || exit 1
    program=ddp_resume.py workers=2 steps=40 crash_at=25 crash_rank=1
else
    program=train workers=4 steps=200 crash_at=130 crash_rank=2
fi

# What is played: the ddprun of this folder's build, where there is one, else that of the PATH, else one is built.
ddprun=build/bin/ddprun
if [[ ! -e build/build.ninja ]] && command -v ddprun >/dev/null; then ddprun=$(command -v ddprun); fi
targets=()
[[ $ddprun != build/bin/ddprun ]] || targets+=(ddprun)
[[ $program != train ]] || targets+=(train)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Builds with a word on how long it takes. A step has some two seconds of processor time.
build() {
    local steps seconds
    steps=$(ninja -C build -n "$@" | grep -c '^\[' || true)
    seconds=$((steps * 2 / $(nproc)))
    ((seconds < 20)) || echo "building $*: $steps steps, some $((seconds / 60 + 1)) minutes with $(nproc) processors"
    NINJA_STATUS='[%f of %t, %e s] ' cmake --build build --target "$@"
}
if ((${#targets[@]})); then
    install_packages "${BUILD_PACKAGES[@]}"
    [[ -e build/build.ninja ]] || cmake --preset release -DDDPRUN_TESTS=OFF
    build "${targets[@]}"
fi
echo "ddprun is $ddprun: $("$ddprun" --version)"

# Runs one job. $1: the name of its log and snapshot; the rest: more options of the program.
job() {
    local name=$1; shift
    local command=("$ddprun" --standalone --nproc-per-node="$workers")
    if [[ $program == train ]]; then
        command+=(build/bin/train --steps "$steps" --snapshot-every 50 --snapshot-dir "$work/$name" "$@")
    else
        command+=(--python="$python" examples/python/ddp_resume.py --steps "$steps" --snapshot "$work/$name.pt" "$@")
    fi
    echo "+ ${command[*]}"
    "${command[@]}" 2>&1 | tee "$work/$name.log"
}
checksum() { grep -oE '(checksum|weights)=[^ ]*' "$work/$1.log" | tail -n 1; }

job calm
if [[ $program == train ]]; then
    job crashed --crash-at-step "$crash_at" --crash-rank "$crash_rank"
else
    job crashed --crash-at-step "$crash_at"
fi
calm=$(checksum calm) crashed=$(checksum crashed)
resumed=$(grep -i 'resum' "$work/crashed.log" | grep -v ddp_resume | tail -n 1 || true)

echo
echo "1. $workers workers trained $steps steps undisturbed: $calm"
echo "2. in a second run rank $crash_rank crashed on purpose at step $crash_at"
echo "3. ddprun stopped all of them and started them again${resumed:+: $resumed}"
echo "4. that run ended with exit code 0 too: $crashed"
if [[ $calm != "$crashed" || -z $calm ]]; then
    echo "5. the two results differ: this is a bug"
    exit 1
fi
echo "5. both results have the same bits"
