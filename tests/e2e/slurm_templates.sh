#!/usr/bin/env bash
# The templates of slurm/, unchanged but for fewer CPUs, on a real Slurm of five hosts with four GPUs each. The elastic
# one loses a node; the one for containers runs in a file tree without Slurm's programs, MUNGE and the names of the
# nodes.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun
need_program python3

start_lab 5 4
mkdir "$work/bin" "$work/programs"
ln -s "$ddprun" "$work/bin/ddprun"
export PATH=$work/bin:$PATH
cp "$root/tests/data/forms/worker.py" "$work/programs/train.py"
cd "$work/programs"

# Submits a script: path, options of sbatch… Sets id.
submit_file() {
    local script=$1 name; shift
    name=$(basename "$script" .sbatch)
    id=$(FORM_SEEN=$work/programs/$name DDPRUN_TEST_MARK=$mark "$slurmlab" run \
        sbatch --parsable --cpus-per-task=4 -o "$work/$name-%a.out" "$@" "$script")
}
# Submits a template as it is: name, options of sbatch…
submit() { submit_file "$root/slurm/$1.sbatch" "${@:2}"; }
# Checks the exit code of a job that has ended: job's id, code.
code_is() {
    "$slurmlab" run scontrol -o show job "$1" | grep -q " ExitCode=$2:0 " || fail "job $1: $("$slurmlab" run scontrol -o show job "$1")"
}
# Checks that each rank has run once with these arguments, and sees all GPUs of its node: name, world size, arguments.
expect_workers() {
    local rank
    (($(find . -maxdepth 1 -name "$1.*" | wc -l) == $2)) || fail "not $2 workers, but $(find . -maxdepth 1 -name "$1.*" | wc -l)"
    for ((rank = 0; rank < $2; rank++)); do
        grep -qxF "WORLD_SIZE=$2" "$1.$rank" || fail "rank $rank has no WORLD_SIZE=$2"
        grep -qxF -- "args $3" "$1.$rank" || fail "rank $rank has $(head -n 1 "$1.$rank")"
        grep -qx 'CUDA_VISIBLE_DEVICES=0,1,2,3' "$1.$rank" || fail "rank $rank does not see its node's GPUs"
    done
}

say "the smallest template has three lines"
(($(wc -l <"$root/slurm/smallest.sbatch") == 3)) || fail "it has more"
submit smallest
smallest=$id
wait_until 60 none_queued || fail "not done"
code_is "$smallest" 0
expect_workers smallest 4 '--epochs 3'

say "an array: each element is a job of its own"
# shellcheck disable=SC2016
# The elements share a folder, so the files of each get its number.
sed -i 's,^env = os.environ$,&\nenv["FORM_SEEN"] += "-" + env.get("SLURM_ARRAY_TASK_ID"\, ""),' train.py
submit array --array=0-2%2
array=$id
wait_until 90 none_queued || fail "not done"
code_is "$array" 0
for number in 0 1 2; do
    expect_workers "array-$number" 8 "--seed $number --output-dir runs/$array/$number"
done
(($(grep -h '^TORCHELASTIC_RUN_ID=' array-*.0 | sort -u | wc -l) == 3)) || fail "two numbers are one run"
expect_nothing_left 5

say "printed and filled in: the virtual environment beside the script, a module, the numbers of the command line"
python3 -m venv --without-pip venv
"$ddprun" --print-sbatch=preemptible --nnodes=2 --nproc-per-node=2 --max-restarts=1 train.py --epochs 7 >"$work/filled.sbatch"
sed -i 's/^#  *module load cuda$/module load cuda/' "$work/filled.sbatch"
# A site's module command is a shell function that every shell has.
module() { export MODULES_SEEN="$*"; }
export -f module
submit_file "$work/filled.sbatch"
filled=$id
wait_until 60 none_queued || fail "not done"
code_is "$filled" 0
(($(find . -maxdepth 1 -name 'filled-.*' | wc -l) == 4)) || fail "not 4 workers: $(ls)"
for text in WORLD_SIZE=4 'args --epochs 7' "VIRTUAL_ENV=$work/programs/venv" 'MODULES_SEEN=load cuda' TORCHELASTIC_MAX_RESTARTS=1; do
    grep -qxF -- "$text" filled-.3 || fail "rank 3 has no $text"
done
unset -f module
rm -rf venv

say "a container without any part of Slurm"
cp "$root/tests/support/apptainer" "$work/bin"
submit container
container=$id
wait_until 60 none_queued || fail "not done"
cp "$work"/container-*.out "$work/run.out"
code_is "$container" 0
expect_workers container- 8 '--epochs 3'
expect_not_in "$work/run.out" 'may join'
! grep -q '^MASTER_ADDR=n' container-.0 || fail "a name that the other node does not know"

say "elastic: the spare replaces a node that is lost"
cat >train.py <<'END'
import os, time
env = os.environ
open(f"{env['FORM_SEEN']}.{env['TORCHELASTIC_RESTART_COUNT']}.{env['RANK']}.{env['SLURMD_NODENAME']}", "x").close()
if env["TORCHELASTIC_RESTART_COUNT"] == "0":
    time.sleep(313)
END
submit elastic
ran() { (($(find . -name "elastic.$1.*" | wc -l) == 16)); }
wait_until 60 ran 0 || fail "not 16 workers: $(ls)"
nodes_of() { find . -name "elastic.$1.*" | sed 's/.*\.//' | sort -u; } # of a generation
spare=$(comm -13 <(nodes_of 0) <(printf 'n%s\n' 1 2 3 4 5))
victim=$(nodes_of 0 | grep -v n1 | head -n 1)
[[ $spare == n[1-5] && -n $victim ]] || fail "not one spare: $spare"
# Everything of the job on that host is killed at once; its slurmd and slurmstepd live.
host=$(readlink "/proc/$(<"$SLURMLAB_DIR/run/slurmd-$victim.pid")/ns/net") lost=""
for pid in $(marked); do
    [[ $(readlink "/proc/$pid/ns/net") != "$host" || $(<"/proc/$pid/comm") == slurmstepd ]] || lost+=" $pid"
done
# shellcheck disable=SC2086
kill -KILL $lost
wait_until 60 none_queued || fail "the job does not end"
ran 1 || fail "generation 1 has not 16 workers: $(ls)"
[[ $(nodes_of 1) == "$({ nodes_of 0; echo "$spare"; } | grep -vx "$victim" | sort)" ]] || fail "not $spare for $victim, but $(nodes_of 1)"
cp "$work"/elastic-*.out "$work/run.out"
expect_in "$work/run.out" 'generation 1: 4 nodes, 16 workers'
rm -rf "$TMPDIR"/ddprun* # of the node that was lost
expect_nothing_left 5
