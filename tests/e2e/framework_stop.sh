#!/usr/bin/env bash
# Unmodified scripts of Lightning and of Hugging Face's Trainer obey a stop (--framework-stop=auto), and a loop of
# Accelerate by the module `ddprun`: all ranks write a checkpoint after the same step and end, no line after the
# training runs, and the next start goes on after that step. `ddpctl snapshot` and `stop --after-snapshot` reach them.
#
#   framework_stop.sh [VENV [FRAMEWORK...]]     a folder of build/: programs-venv has what PyPI has now,
#                                               programs-old-venv what it had a year before
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl
python=$root/build/${1:-programs-venv}/bin/python
[[ -x $python ]] || skip "no $python; tests/run.sh --long makes it"
export PYTHONWARNINGS=ignore TRANSFORMERS_VERBOSITY=error HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES=''
export PYTHONDONTWRITEBYTECODE=1
mkdir "$work/module"
cp -r "$root/packaging/python/ddprun" "$work/module/ddprun"
cd "$work"

# Starts a script, and waits until both ranks train: framework, steps, arguments…
begin() {
    local script=$e2e/frameworks/$1_script.py steps=$2; shift 2
    start job --standalone --no-label --nproc-per-node=2 --max-restarts=0 --ledger="directory:$work/ledger" \
        --python "$python" "$@" "$script" "$steps"
    wait_until 180 trains || fail "the ranks do not train"
}
# Without labels the lines of two ranks may be one.
trains() { [[ $(grep -o 'has done 5 steps' "$work/job.out" | wc -l) == 2 ]] || ended "${pid[job]}"; }
ctl() {
    timeout 60 "$bin/ddpctl" "$@" --ledger="$(ls -td "$work"/ledger/*/ | head -n 1)" >"$work/ctl.out" 2>&1 ||
        fail "ddpctl $1: $(cat "$work/ctl.out")"
}
# The step from which the ranks train, which is the same.
from() { grep -oP 'trains from step \K[0-9]+' "$work/job.out" | sort -u; }
# A stop has ended the job: its code, framework. The next start ends after as many more steps as given.
goes_on() {
    local framework=$1 option=$2
    [[ ! -e $framework.final ]] || fail "a line after the training was run"
    expect_not_in "$work/job.out" finished
    expect_not_in "$work/job.err" 'Traceback|killed'
    expect_nothing_left 5
    begin "$framework" 40 "$option"
    join job 180
    expect_code 0
    expect_in "$work/job.out" 'finished at step 40'
    [[ -e $framework.final ]] || fail "the line after the training was not run"
    (($(from) >= 5)) || fail "it goes on from step $(from)"
    rm -rf "${framework:?}"*
}

frameworks=("${@:2}")
((${#frameworks[@]} > 0)) || frameworks=(lightning transformers accelerate)
for framework in "${frameworks[@]}"; do
    option=--framework-stop=auto
    if [[ $framework == accelerate ]]; then option=--framework-stop=off; export PYTHONPATH=$work/module; fi
    say "$framework: SIGTERM, and the next start goes on"
    begin "$framework" 100000 "$option"
    kill -TERM "${pid[job]}"
    join job 60
    expect_code 143
    [[ $framework == accelerate ]] || expect_in "$work/job.err" '^ddprun: the checkpoint of step [0-9]+ is complete: '
    goes_on "$framework" "$option"
    [[ ${DDPRUN_LONG:-} ]] || continue
    say "$framework: a snapshot for an operator, and a stop after one"
    begin "$framework" 100000 "$option"
    ctl snapshot
    wait_until 30 has "$work/job.err" 'has asked is reported: step' || fail "no snapshot"
    ctl stop --after-snapshot
    join job 60
    expect_code 143
    expect_in "$work/job.err" 'after the snapshot of step'
    goes_on "$framework" "$option"
done
unset PYTHONPATH

say "a version that was not tried is left alone, with a line"
mkdir -p "$work/other/lightning/pytorch/trainer" "$work/other/lightning-99.0.dist-info"
printf 'Metadata-Version: 2.1\nName: lightning\nVersion: 99.0\n' >"$work/other/lightning-99.0.dist-info/METADATA"
touch "$work"/other/lightning/{,pytorch/,pytorch/trainer/}__init__.py
echo 'class Trainer: pass' >"$work/other/lightning/pytorch/trainer/trainer.py"
cat >"$work/other.py" <<'P'
from lightning.pytorch.trainer.trainer import Trainer
print(vars(Trainer).get("__init__"), flush=True)
P
PYTHONPATH=$work/other run 60 --standalone --no-label --nproc-per-node=2 --framework-stop=auto --warm=off \
    --python "$python" "$work/other.py"
expect_code 0
expect_in "$work/run.err" '^ddprun: lightning 99.0 is not one of the versions that ddprun knows .*leaves it alone$'
[[ $(grep -o None "$work/run.out" | wc -l) == 2 ]] || fail "its trainer was changed"
