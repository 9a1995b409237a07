#!/usr/bin/env bash
# The launch lines that people use today run unchanged under a real Slurm: the batch scripts of tests/data/forms, and
# again with ddprun called by the name torchrun (FORMS=PATTERN: some of them). Then the mistakes that such scripts make:
# each is named in a sentence, or does no harm.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
unset PET_NO_LABEL
need_built ddprun
need_program python3

start_lab 8 4

forms=$root/tests/data/forms
mkdir "$work/bin" "$work/programs" "$work/programs/torchtitan" "$work/seen" "$work/torchrun" "$work/out"
cp "$forms/worker.py" "$work/programs/train.py"
cp "$forms/worker.py" "$work/programs/torchtitan/train.py"
ln -s "$ddprun" "$work/bin/ddprun"
ln -s "$ddprun" "$work/bin/torchrun"
export PATH=$work/bin:$PATH
unset OMP_NUM_THREADS
cd "$work/programs"
# Forms that called torchrun at first run once more with that name.
for form in $(grep -l '^#torchrun$' "$forms"/*.sbatch); do
    sed 's/\bddprun\b/torchrun/g' "$form" >"$work/torchrun/$(basename "$form" .sbatch)_as_torchrun.sbatch"
done

declare -A job
# Submits a form and notes its job id: script, options of sbatch…
submit() {
    local script=$1 name; shift
    name=$(basename "$script" .sbatch)
    job[$name]=$(FORM_SEEN=$work/seen/$name DDPRUN_TEST_MARK=$mark "$slurmlab" run sbatch --parsable -o "$work/out/$name.out" "$@" "$script")
}
# Exit code and signal of a form that has ended: name.
code_of() { sed -n "s/.*\bJobId=${job[$1]} .* ExitCode=\([0-9]*\):\([0-9]*\) .*/\1 \2/p" "$work/jobs"; }

# Checks a form that has ended against the #expect lines in it: script, name.
check() {
    local script=$1 name=$2 what text rank seen world='' port='' args=''
    say "form $name"
    cp "$work/out/$name.out" "$work/run.out"
    [[ $(code_of "$name") == "0 0" ]] || fail "exit code $(code_of "$name")"
    while read -r what text; do
        case $what in
            world) world=$text ;;
            args) args="args${text:+ $text}" ;;
            says) expect_in "$work/out/$name.out" "$text" ;;
        esac
    done < <(sed -n 's/^#expect //p' "$script")
    (($(find "$work/seen" -name "$name.*" | wc -l) == world)) || fail "not $world workers: $(ls "$work/seen")"
    for ((rank = 0; rank < world; rank++)); do
        seen=$work/seen/$name.$rank
        [[ -s $seen ]] || fail "rank $rank did not run"
        grep -qxF -- "WORLD_SIZE=$world" "$seen" || fail "rank $rank: $(grep WORLD_SIZE "$seen"), not $world"
        grep -qxF -- "SLURM_PROCID=$rank" "$seen" || fail "rank $rank is another task: $(grep SLURM_PROCID "$seen")"
        [[ $(sed -n 1p "$seen" | sed 's/ $//') == "$args" ]] || fail "rank $rank has $(head -n 1 "$seen"), not $args"
        port=${port:-$(grep '^MASTER_PORT=' "$seen")}
        grep -qxF -- "$port" "$seen" || fail "rank $rank meets at another port"
        sed -n 's/^#expect env //p' "$script" | while read -r text; do
            grep -qxF -- "$text" "$seen" || fail "rank $rank has no $text, but $(grep "^${text%%=*}=" "$seen")"
        done
    done
}

say "all forms are submitted at once"
scripts=()
for script in "$forms"/*.sbatch "$work"/torchrun/*.sbatch; do
    [[ ${FORMS:-} ]] && [[ ! $script =~ $FORMS ]] || scripts+=("$script")
done
for script in "${scripts[@]}"; do submit "$script"; done
wait_until 150 none_queued || fail "not done: $("$slurmlab" run squeue)"
"$slurmlab" run scontrol -o show jobs >"$work/jobs"
for script in "${scripts[@]}"; do check "$script" "$(basename "$script" .sbatch)"; done
expect_nothing_left 5

say "a worker that calls srun: with its own -N and -n, and without the numbers of the ranks"
cat >"$work/evaluate.sh" <<'WORKER'
[[ $RANK == 0 ]] || exit 0
srun --overlap -N2 -n2 hostname
env -u SLURM_NTASKS -u SLURM_NPROCS -u SLURM_NTASKS_PER_NODE srun --overlap --ntasks-per-node=1 hostname
WORKER
lab 40 srun -N2 "--nodelist=n[1-2]" --ntasks-per-node=1 ddprun --nproc-per-node=2 --no-label bash "$work/evaluate.sh"
expect_code 0
[[ $(sort "$work/run.out" | tr '\n' ' ') == "n1 n1 n2 n2 " ]] || fail "not both: $(<"$work/run.out")"

say "a worker that submits jobs: without the numbers of the ranks, and with --slurm-env=keep as in a plain task"
for ((n = 1; n <= 3; n++)); do printf '#!/bin/bash\nsrun hostname\n' >"$work/evaluate$n.sbatch"; done
cat >"$work/submit.sh" <<'WORKER'
[[ $RANK == 0 ]] || exit 0
cd "${0%/*}"
clean="env -u SLURM_NTASKS -u SLURM_NPROCS -u SLURM_NTASKS_PER_NODE"
[[ ${SLURM_STEP_ID:-} ]] || $clean sbatch --wait -N1 -o evaluated.1 evaluate1.sbatch &
[[ ${SLURM_STEP_ID:-} ]] || $clean sbatch --wait -N2 -o evaluated.2 evaluate2.sbatch &
[[ ! ${SLURM_STEP_ID:-} ]] || sbatch --wait -N2 --gres=gpu:1 -o evaluated.3 evaluate3.sbatch &
wait
WORKER
for view in rewrite keep; do
    lab 60 srun -N2 "--nodelist=n[1-2]" --ntasks-per-node=1 ddprun --slurm-env=$view --nproc-per-node=2 bash "$work/submit.sh"
    expect_code 0
done
for n in 1 2 2:3; do
    (($(grep -c '^n[1-8]$' "$work/evaluated.${n#*:}") == ${n%:*})) || fail "not on ${n%:*} nodes: $(<"$work/evaluated.${n#*:}")"
done

# Checks that what cannot work ends at once on all nodes: pattern of the message, options of srun, then -- and options
# of ddprun.
refused() {
    local pattern=$1 options=(); shift
    while [[ $1 != -- ]]; do options+=("$1"); shift; done
    lab 30 srun "${options[@]}" ddprun "${@:2}" bash -c 'touch "$0"' "$work/started"
    expect_code 2
    expect_in "$work/run.err" "$pattern"
    [[ ! -e $work/started ]] || fail "a worker ran"
    expect_nothing_left 5
}
# Checks that what is only unusual runs, with a message: pattern, world size, options of srun, then -- and options of
# ddprun.
said() {
    local pattern=$1 world=$2 options=(); shift 2
    while [[ $1 != -- ]]; do options+=("$1"); shift; done
    rm -f "$work"/trap.*
    FORM_SEEN=$work/trap lab 60 srun "${options[@]}" ddprun "${@:2}" train.py
    expect_code 0
    expect_in "$work/run.err" "$pattern"
    (($(find "$work" -maxdepth 1 -name 'trap.*' | wc -l) == world)) || fail "not $world workers"
}
at=${SLURMLAB_NET:-10.77.0}
each=(--ntasks-per-node=1)
# The hosts are named: if Slurm may choose, it takes others while it still cleans up the first ones.
two=(-N2 "--nodelist=n[1-2]" "${each[@]}") three=(-N3 "--nodelist=n[1-3]" "${each[@]}")

say "an endpoint of two addresses, with and without quotes"
refused 'more than one address.*leave the option out' "${two[@]}" -- --rdzv-endpoint "$at.1 10.9.9.9:29500"
refused 'two addresses, and the second of them \(10\.9\.9\.9:29500\)' "${two[@]}" -- --rdzv-endpoint "$at.1" 10.9.9.9:29500
say "more nodes than the step has"
refused '--nnodes=4: this step has 2 nodes \(n\[1-2\]\)' "${two[@]}" -- --nnodes 4
say "several ddprun on one node"
refused 'ntasks-per-node=1' -N2 --ntasks-per-node=2 -- --nproc-per-node=2
say "a login node, where there is no allocation"
lab 20 ddprun --nnodes=4 true
expect_code 2
expect_in "$work/run.err" 'start ddprun with srun'
say "srun forgotten in a batch script of two nodes"
printf '#!/bin/bash\nddprun true\n' >"$work/forgotten.sbatch"
lab_batch 30 -N2 -o "$work/batch.out" "$work/forgotten.sbatch"
expect_code 2
expect_in "$work/batch.out" 'srun is missing'
say "nodes that a script starts one by one, the first of them itself"
cat >"$work/one_by_one.sbatch" <<S
#!/bin/bash
options="--nnodes=3 --rdzv-id=parts --rdzv-backend=c10d --rdzv-endpoint=\$SLURMD_NODENAME:29511 --join-timeout=30 --no-label"
srun -N2 -n2 --exclude=\$SLURMD_NODENAME ddprun \$options bash -c 'echo "part of \$WORLD_SIZE"' &
ddprun \$options bash -c 'echo "part of \$WORLD_SIZE"' && wait \$!
S
lab_batch 60 -N3 --ntasks-per-node=1 -o "$work/batch.out" "$work/one_by_one.sbatch"
expect_code 0
(($(grep -c '^part of 3' "$work/batch.out") == 3)) || fail "not three nodes"
expect_in "$work/batch.out" 'waits at the endpoint for the other nodes of --nnodes'
say "an endpoint that is nobody's: a name that no host has, and an address that no node has"
refused 'the endpoint n99: no host of this name is known on n1.*\(n\[1-2\]\)' "${two[@]}" -- --rdzv-endpoint=n99:29500
lab 40 srun "${two[@]}" ddprun --rdzv-endpoint="$at.250:29500" --join-timeout=8 bash -c 'touch "$0"' "$work/started"
expect_code 69
expect_in "$work/run.err" "nobody answers at the endpoint $at.250 yet, which is no address of this node \(n1\).*n\[1-2\]"
expect_in "$work/run.err" "the first is $at.250:29500"
expect_nothing_left 5
say "a variable that contradicts another, and a host list with a mistake"
lab 30 srun "${two[@]}" env SLURM_STEP_NUM_NODES=3 ddprun true
expect_code 2
expect_in "$work/run.err" 'SLURM_STEP_NUM_NODES'
lab 30 srun "${two[@]}" env 'SLURM_STEP_NODELIST=n[1-2,x]' ddprun true
expect_code 2
expect_in "$work/run.err" 'SLURM_STEP_NODELIST.*at character 7'
expect_nothing_left 5

say "a mistake on one node ends all nodes at once, also if that node leads"
for host in n1 n2; do
    # shellcheck disable=SC2016
    lab 20 srun "${three[@]}" bash -c '[[ $SLURMD_NODENAME != "$0" ]] || cd /; exec ddprun train.py' "$host"
    expect_code 2
    expect_in "$work/run.err" "^ddprun: script train.py: No such file"
    expect_in "$work/run.err" "node $host is unusable: script train.py: No such file"
    expect_nothing_left 5
done
say "if the other nodes are enough, they run without it"
rm -f "$work"/trap.*
# shellcheck disable=SC2016
FORM_SEEN=$work/trap lab 60 srun "${three[@]}" \
    bash -c '[[ $SLURMD_NODENAME != n3 ]] || cd /; exec ddprun --nnodes=2:3 --last-call=1 train.py'
expect_code 0
(($(find "$work" -maxdepth 1 -name 'trap.*' | wc -l) == 2)) || fail "not 2 workers"

say "a leader that cannot open its ledger: with the default folder the job runs all the same, and a line says what is lost"
lab 30 srun "${two[@]}" --chdir=/sys ddprun true
expect_code 0
expect_in "$work/run.err" '/sys/.ddprun.*the ledger is in memory instead, so the loss of this node or a requeue loses'
say "with a folder that was asked for, or after a requeue, all nodes end at once with the reason"
for form in "ddprun --ledger=directory:/sys/mine" "env SLURM_RESTART_COUNT=1 ddprun"; do
    # shellcheck disable=SC2086
    lab 30 srun "${two[@]}" --chdir=/sys $form true
    expect_code 69
    (($(grep -c 'cannot open the ledger: ' "$work/run.err") >= 1)) || fail "the reason is not given: $form"
    expect_nothing_left 5
done

say "several nodes without any secret: no munge, and a ledger in memory; --identity=none starts all the same"
mkdir "$work/no_munge"
for name in munge unmunge; do printf '#!/bin/sh\nexit 6\n' >"$work/no_munge/$name"; chmod +x "$work/no_munge/$name"; done
lab 30 srun "${two[@]}" env PATH="$work/no_munge:$PATH" ddprun --ledger=memory true
expect_code 69
expect_in "$work/run.err" 'no --secret-file.*start munged.*--identity=none lets anybody join'
lab 30 srun "${two[@]}" env PATH="$work/no_munge:$PATH" ddprun --ledger=memory --identity=none true
expect_code 0

say "a loopback endpoint for several nodes"
refused 'localhost is each node.s own loopback address, where 2 nodes cannot meet; leave' "${two[@]}" -- --rdzv-endpoint=localhost:29500
say "the batch script's host is not in the step, by name and by address"
for host in n1 "$at.1"; do
    cat >"$work/part.sbatch" <<END
#!/bin/bash
srun -N2 -n2 --nodelist=n[2-3] ddprun --rdzv-endpoint=$host:29500 train.py
END
    rm -f "$work"/trap.*
    FORM_SEEN=$work/trap lab_batch 60 "${three[@]}" -o "$work/batch.out" "$work/part.sbatch"
    expect_code 0
    expect_in "$work/batch.out" 'is not a node of this step; the nodes meet at n2'
done
say "the login node is not in the step, as \$SLURM_LAUNCH_NODE_IPADDR and by name; in a batch script it is the first node"
cat >"$work/launch.sh" <<'END'
exec ddprun --rdzv-endpoint="${1:-$SLURM_LAUNCH_NODE_IPADDR}:29500" --no-label bash -c 'echo "of $WORLD_SIZE at $MASTER_ADDR"'
END
printf '#!/bin/bash\nsrun bash %s/launch.sh\n' "$work" >"$work/launch.sbatch"
for host in "" ctl; do
    lab 60 srun "${two[@]}" bash "$work/launch.sh" "$host"
    expect_code 0
    (($(grep -c '^of 2 at n1' "$work/run.out") == 2)) || fail "not one job of two: $(<"$work/run.out")"
    (($(grep -c 'is not a node of this step; the nodes meet at n1' "$work/run.err") == 1)) || fail "it is not said once"
done
lab_batch 60 "${two[@]}" -o "$work/batch.out" "$work/launch.sbatch"
expect_code 0
(($(grep -c "^of 2 at $at.1" "$work/batch.out") == 2)) || fail "they do not meet at the first node's address"
expect_not_in "$work/batch.out" 'is not a node of this step'
say "the first node knows its own name as a loopback address, as in Debian's /etc/hosts"
{ echo "127.0.0.1 localhost"; echo "127.0.1.1 n1"; grep -v ' n1$' "$SLURMLAB_DIR/hosts"; } >"$work/debian"
rm -f "$work"/trap.*
FORM_SEEN=$work/trap lab 60 srun "${two[@]}" unshare --mount \
    bash -c '[[ $SLURMD_NODENAME != n1 ]] || mount --bind "$0" /etc/hosts; exec ddprun --join-timeout=20 train.py' "$work/debian"
expect_code 0
say "a run id with blanks, dollars and slashes still names a folder"
said 'generation 0: 2 nodes' 2 "${two[@]}" -- --rdzv-id='$JOB a/../b' --log-dir="$work/logs" --redirects=3
[[ -s $(find "$work/logs" -path '*/attempt_0/0/stdout.log' | head -n 1) ]] || fail "no log"
expect_nothing_left 5
