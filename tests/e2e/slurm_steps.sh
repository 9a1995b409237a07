#!/usr/bin/env bash
# The ways in which Slurm starts a step, on a real cluster of three hosts: on a part of the nodes, under salloc, in an
# array, several at the same time on the same nodes, a heterogeneous job, a host file; hosts that know themselves as
# 127.0.1.1; --interface; hosts with IPv6 only; by ssh; a node of another version. First: the lab of a test that was
# killed is removed by the next one.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun

say "the lab of a test that was killed is taken down"
sleep 1000 &
killed=$!
SLURMLAB_DIR=$work/killed SLURMLAB_FOR=$killed "$slurmlab" up 1 >"$work/up.out" 2>&1 ||
    fail "the first cluster does not start"
"$slurmlab" up 1 >"$work/up.out" 2>&1 && fail "a second cluster starts while the first one's owner lives"
kill -9 "$killed"
wait "$killed" || true
# Only the backfill scheduler starts heterogeneous jobs.
SLURMLAB_SCHEDULER=backfill start_lab 3
[[ ! -e $work/killed ]] || fail "left: $(ls "$work/killed")"
cd "$work" # the ledger's folder is made in the working directory

# Runs a batch script from standard input to its end: options of sbatch… The output of all its elements is in run.out.
batch() {
    { echo '#!/bin/bash'; cat; } >"$work/job.sbatch"
    show=$show ddprun=$ddprun lab_batch 40 -o "$work/said.%a" -e "$work/batch.err" "$@" "$work/job.sbatch"
    cat "$work"/said.* >"$work/run.out" 2>/dev/null || true
    rm -f "$work"/said.*
}
# What a worker does here: it prints a name, its place, its host and MASTER_ADDR.
show='echo "$0 $RANK/$WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $SLURMD_NODENAME $MASTER_ADDR"'
# Checks what the workers of one name have printed: name, lines in any order.
said() {
    [[ $(grep "^$1 " "$work/run.out" | cut -d' ' -f2- | sort) == "$(printf '%s\n' "${@:2}" | sort)" ]] ||
        fail "$1 says $(grep "^$1 " "$work/run.out")"
}

say "a step on some of the job's nodes knows only those"
batch -N3 <<'JOB'
srun -N2 -n2 -r1 "$ddprun" --nproc-per-node=1 bash -c "$show" part
srun -N1 -n1 -w n3 --overlap "$ddprun" --nproc-per-node=2 --no-label bash -c "$show" third
JOB
expect_code 0
said part '0/2 0/2 n2 n2' '1/2 1/2 n3 n2'
said third '0/2 0/1 n3 127.0.0.1' '1/2 0/1 n3 127.0.0.1'

say "steps at the same time on the same nodes do not disturb each other"
# Each step waits for workers of the others, so all three run at the same time.
batch -N3 -n6 <<'JOB'
meet='touch "$1.$RANK"
until [[ -e a.0 && -e a.1 && -e a.2 && -e b.0 && -e b.1 && -e b.2 && -e c.5 ]]; do sleep 0.05; done; '
srun --overlap -N3 -n3 "$ddprun" --nproc-per-node=1 bash -c "$meet$show" first a &
srun --overlap -N3 -n3 "$ddprun" --nproc-per-node=1 bash -c "$meet$show" second b &
srun --overlap -N3 -n6 "$ddprun" --task-per-worker bash -c "$meet$show" third c &
wait
JOB
expect_code 0
for step in first second; do said $step '0/3 0/3 n1 n1' '1/3 1/3 n2 n1' '2/3 2/3 n3 n1'; done
(($(grep -c '^third ./6 ./3 n. n1$' "$work/run.out") == 6)) || fail "third says $(grep '^third' "$work/run.out")"

say "under salloc, and each element of an array by itself"
lab 30 salloc -N2 env show="$show" ddprun="$ddprun" bash -c '
    srun --ntasks-per-node=1 "$ddprun" --nproc-per-node=1 bash -c "$show" salloc
    "$ddprun" true; [[ $? == 2 ]]'
expect_code 0
said salloc '0/2 0/2 n1 n1' '1/2 1/2 n2 n1'
expect_in "$work/run.err" 'this is the shell of salloc, not a node of job'
batch -N3 --array=1-2 <<'JOB'
srun --ntasks-per-node=1 "$ddprun" --nproc-per-node=1 bash -c "$show" "element$SLURM_ARRAY_TASK_ID"
JOB
expect_code 0
for element in element1 element2; do said $element '0/3 0/3 n1 n1' '1/3 1/3 n2 n1' '2/3 2/3 n3 n1'; done

say "a heterogeneous job is one world, with a different number of workers on each node"
batch -N1 -n1 : -N2 -n2 <<'JOB'
srun --het-group=0,1 bash -c '"$ddprun" --no-label --nproc-per-node=$((SLURM_NODEID + 1)) bash -c "$show" all'
srun --het-group=0 "$ddprun" --nproc-per-node=1 bash -c "$show" colon : \
    --het-group=1 "$ddprun" --no-label --nproc-per-node=2 bash -c "$show" colon
srun --het-group=0,1 "$ddprun" --task-per-worker bash -c "$show" tasks
JOB
expect_code 0
said all '0/6 0/3 n1 n1' '1/6 1/3 n2 n1' '2/6 1/3 n2 n1' '3/6 2/3 n3 n1' '4/6 2/3 n3 n1' '5/6 2/3 n3 n1'
said colon '0/5 0/3 n1 n1' '1/5 1/3 n2 n1' '2/5 1/3 n2 n1' '3/5 2/3 n3 n1' '4/5 2/3 n3 n1'
said tasks '0/3 0/3 n1 n1' '1/3 1/3 n2 n1' '2/3 2/3 n3 n1'

say "with a host file the ranks follow SLURM_NODEID"
printf 'n3\nn1\n' >"$work/hostfile"
lab 20 env SLURM_HOSTFILE="$work/hostfile" srun -n2 -m arbitrary "$ddprun" --nproc-per-node=1 bash -c "$show" file
expect_code 0
said file '0/2 0/2 n1 n1' '1/2 1/2 n3 n1'

say "a host that knows itself as 127.0.1.1 is reached by the others"
# A file /etc/hosts in which the name of the host itself is 127.0.1.1, as Debian writes it.
cat >"$work/as_debian.sh" <<'SH'
host=$(hostname)
{ echo "127.0.1.1 $host"; grep -v " $host\$" /etc/hosts; } >"$0.$host"
exec unshare --mount bash -c 'mount --bind "$0" /etc/hosts; exec "$@"' "$0.$host" "$@"
SH
lab 30 srun -N2 --ntasks-per-node=1 bash "$work/as_debian.sh" \
    "$ddprun" --nproc-per-node=1 --join-timeout=10 bash -c "$show" debian
expect_code 0
said debian '0/2 0/2 n1 n1' '1/2 1/2 n2 n1'
lab 30 srun -N2 --ntasks-per-node=2 bash "$work/as_debian.sh" \
    "$ddprun" --task-per-worker --join-timeout=10 bash -c "$show" debian
expect_code 0
said debian '0/4 0/2 n1 n1' '1/4 0/2 n1 n1' '2/4 1/2 n2 n1' '3/4 1/2 n2 n1'

say "with --interface the others get the address of that network"
# A second network on two of the hosts.
for host in n1 n2; do
    "$slurmlab" on "$host" ip link add fast0 type veth peer name fast1
    "$slurmlab" on "$host" ip addr add "10.249.0.${host#n}/24" dev fast0
done
lab 20 srun -N2 --ntasks-per-node=1 "$ddprun" --nproc-per-node=1 --interface=fast0 bash -c "$show" fast
expect_code 0
said fast '0/2 0/2 n1 10.249.0.1' '1/2 1/2 n2 10.249.0.1'
lab 20 srun -N2 --ntasks-per-node=1 "$ddprun" --interface=ib7 true
expect_code 2
expect_in "$work/run.err" '^ddprun: --interface=ib7: n2 has no address on this interface, but on lo, eth0, fast0$'
expect_nothing_left

say "hosts whose names have IPv6 addresses only meet, without an endpoint and with one"
for host in n1 n2 n3; do
    "$slurmlab" on "$host" ip -6 addr add "fd77::${host#n}/64" dev eth0 nodad || skip "no IPv6 on a host here"
done
{ printf '::1 localhost\n'; for n in 1 2 3; do echo "fd77::$n n$n"; done; } >"$work/six"
cat >"$work/as_six.sh" <<'SH'
exec unshare --mount bash -c 'mount --bind "$0" /etc/hosts; exec "$@"' "${0%/*}/six" "$@"
SH
for option in --nproc-per-node=1 --rdzv-endpoint=n1:29500 '--rdzv-endpoint=[fd77::1]:29500' --master-addr=fd77::1; do
    lab 30 srun -N3 --ntasks-per-node=1 bash "$work/as_six.sh" \
        "$ddprun" --nproc-per-node=1 --join-timeout=15 "$option" bash -c "$show" six
    expect_code 0
    at=n1
    [[ $option != *fd77* ]] || at=fd77::1
    said six "0/3 0/3 n1 $at" "1/3 1/3 n2 $at" "2/3 2/3 n3 $at"
done
if [[ -x $bin/train ]]; then
    lab 60 srun -N3 --ntasks-per-node=1 bash "$work/as_six.sh" "$ddprun" --nproc-per-node=1 "$bin/train" --steps 20
    expect_code 0
fi

say "by ssh: each host's ddprun is started by itself, without Slurm's variables, the first in the batch script"
cat >"$work/ssh.sbatch" <<S
#!/bin/bash
touch $work/began
exec $ddprun --nnodes=2 --node-rank=0 --rdzv-id=ssh --rdzv-endpoint=n1:29511 --nproc-per-node=1 --join-timeout=20 \
    bash -c '$show' ssh
S
by_ssh() { env -i PATH=/usr/bin:/bin DDPRUN_TEST_MARK="$mark" "$ddprun" --nnodes=2 --node-rank=1 --rdzv-id=ssh \
    --rdzv-endpoint=n1:29511 --nproc-per-node=1 --join-timeout=20 bash -c "SLURMD_NODENAME=n2; $show" ssh; }
export -f by_ssh
export ddprun show mark
(
    wait_until 30 test -e "$work/began"
    "$slurmlab" on n2 bash -c by_ssh >"$work/ssh.out" 2>"$work/ssh.err" </dev/null
) &
other=$!
lab_batch 40 -N2 --nodelist=n1,n2 --ntasks-per-node=1 -o "$work/first.out" "$work/ssh.sbatch"
expect_code 0
wait "$other" || fail "the second node ended with $?"
cat "$work/first.out" "$work/ssh.out" | sed 's/^\[.*\]://' >"$work/run.out"
said ssh '0/2 0/2 n1 n1' '1/2 1/2 n2 n1'
expect_nothing_left

say "a node of another version: a line names both hosts and versions, once, and all end at once"
version=$("$ddprun" --version | sed 's/^ddprun \([^,]*\),.*/\1/')
LC_ALL=C sed "s/${version//./\\.}/9${version:1}/g" "$ddprun" >"$work/newer" # as long, so the program stays whole
chmod 755 "$work/newer"
[[ $("$work/newer" --version) == "ddprun 9${version:1},"* ]] || fail "its version is not another one"
lab 60 srun -N2 --ntasks-per-node=1 bash -c '((SLURM_PROCID == 0)) || exec "$0" true; exec "$1" true' \
    "$work/newer" "$ddprun"
expect_code 69
both="node n2 runs ddprun 9${version:1}; the rendezvous on n1 runs ddprun $version; use the same version"
(($(grep -c "refused a node: $both" "$work/run.err") == 1)) || fail "not one line"
expect_in "$work/run.err" "^ddprun n2: (error: )?the rendezvous refused this node: $both"

say "--kill-on-bad-exit does not cut --on-failure short: all nodes leave together, when it has ended"
printf '#!/bin/sh\nsleep 1; echo done >"%s/told"\n' "$work" >"$work/slow"
chmod +x "$work/slow"
lab 30 srun -N3 --kill-on-bad-exit=1 --wait=1 "$ddprun" --nproc-per-node=1 --max-restarts=0 --on-failure="$work/slow" \
    bash -c '((RANK == 2)) && exit 7; exec sleep 327'
expect_code 7
[[ -s $work/told ]] || fail "--on-failure was cut short"
expect_nothing_left
