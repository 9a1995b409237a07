#!/usr/bin/env bash
# Programs of MPI under ddprun (--pmi): MPICH's find each other, on one node and on two, and are restarted like others.
source "$(dirname "${BASH_SOURCE[0]}")/mpi_common.sh"
need_built ddprun
need_program mpicc.mpich
need_program python3

program=$work/mpi_program
mpicc.mpich -o "$program" "$e2e/mpi_program.c" || fail "the program does not compile"

say "hello, ring, all-reduce and groups on one node"
run 60 --standalone --nproc-per-node=4 --pmi "$program" ring sum split
expect_code 0
expect_in "$work/run.out" 'ring 4$'
expect_times 'sum 6 at [0-3] of 4$' 4
expect_times 'half 2 host 4 at [02]$' 2
expect_times 'half 4 host 4 at [13]$' 2

say "a worker that begins a second program of MPI is told why this cannot be"
run 60 --standalone --nproc-per-node=2 --pmi --max-restarts=0 bash -c "$program sum && $program ring"
expect_code 141
expect_times 'sum 1 at [01] of 2$' 2
expect_in "$work/run.err" 'rank [01] may have begun a second program of MPI: a worker can run one'

say "two programs of MPI at once in a worker are ended, with the reason"
run 60 --standalone --nproc-per-node=2 --pmi --max-restarts=0 bash -c "$program sum & $program sum; wait"
expect_code 137
expect_in "$work/run.err" 'two programs of MPI run in it at once'

say "a program that asks nothing by PMI: one line says so"
run 60 --standalone --nproc-per-node=2 --pmi true
expect_code 0
(($(grep -c 'none of 2 workers of this node, from rank 0 on, has asked' "$work/run.err") == 1)) || fail "not one line"
run 60 --standalone --nproc-per-node=2 --pmi "$program" sum
expect_not_in "$work/run.err" 'asked PMI'

say "a program of Open MPI is refused, with what to do"
echo 'int MPI_Init(void) { return 0; }' | gcc -xc - -shared -fPIC -Wl,-soname,libmpi.so.40 -o "$work/libmpi.so.40"
echo 'int MPI_Init(void); int main(void) { return MPI_Init(); }' |
    gcc -xc - -xnone "$work/libmpi.so.40" -o "$work/open_mpi"
run 60 --standalone --nproc-per-node=2 --pmi "$work/open_mpi"
expect_code 2
expect_in "$work/run.err" 'linked to Open MPI \(libmpi.so.40\), .*: start it with srun --mpi=pmix, or build it with MPICH'

say "a rank that leaves without MPI_Init, with exit code 0, ends a generation"
run 60 --standalone --nproc-per-node=2 --pmi --max-restarts=0 bash -c '((RANK == 1)) || exec "$0" sum' "$program"
((code != 0)) || fail "it has ended with success"
expect_in "$work/run.err" 'rank 1 has left (with exit code 0 before MPI_Init|before it)'

say "a killed rank: all are started again, in a new space of keys"
run 60 --standalone --nproc-per-node=3 --pmi --max-restarts=1 "$program" kill sum
expect_code 0
expect_in "$work/run.err" 'rank 2 .*SIGKILL'
expect_times 'sum 3 at [0-2] of 3$' 3

say "MPI_Abort ends a generation, with any code"
run 60 --standalone --nproc-per-node=2 --pmi --max-restarts=0 "$program" abort
expect_code 7
run 60 --standalone --nproc-per-node=2 --pmi --max-restarts=0 "$program" abort0
expect_code 137
expect_in "$work/run.err" 'MPI_Abort with exit code 0'

say "a rank that leaves before MPI_Finalize, with exit code 0, ends a generation"
run 60 --standalone --nproc-per-node=2 --pmi --max-restarts=0 "$program" leave sum
expect_code 1
expect_in "$work/run.err" 'rank 1 has left with exit code 0 before MPI_Finalize'

say "two nodes, and a rank that is killed"
two_nodes --pmi -- --nproc-per-node=2 --max-restarts=1 --lease=5 "$program" kill ring sum split
join_both 90
expect_times 'ring 4$' 1
expect_times 'sum 6 at [0-3] of 4$' 4
# Each node is a host to MPICH, since ddprun says so.
expect_times 'half [24] host 2 at [0-3]$' 4

say "nodes with other numbers of workers"
at=$(free_port)
for rank in 0 1; do
    start n$rank --nnodes=2 --node-rank=$rank --rdzv-id="$mark" --rdzv-endpoint="127.0.0.1:$at" --pmi \
        --nproc-per-node=$((rank + 1)) "$program" sum
done
join_both 60
expect_times 'sum 3 at [0-2] of 3$' 3

say "a node without --pmi is refused by name"
two_nodes -- --nproc-per-node=1 --join-timeout=10 "$program" sum
join n1 60
expect_code 69
expect_in "$work/n1.err" 'was started without --pmi'
kill -TERM "${pid[n0]}"
join n0 30

say "a program of MPI without --pmi is warned of"
run 60 --standalone --nproc-per-node=2 "$program" sum
expect_code 0
expect_in "$work/run.err" 'uses MPI \(libmpich.so.12\), but --pmi is not given'
expect_times 'sum 0 at 0 of 1$' 2
run 60 --standalone --nproc-per-node=1 "$program" sum
expect_not_in "$work/run.err" 'pmi'

say "a worker that sends something else, floods, does not read or leaves itself is ended, with the reason"
cat >"$work/wrong.py" <<'PYTHON'
import os
import sys

fd = int(os.environ["PMI_FD"])
how = sys.argv[1]
if how == "stranger":
    os.write(fd, b"GET / HTTP/1.1\n")
elif how == "long":
    os.write(fd, b"cmd=put " + b"x" * 100000)
elif how == "leaves":
    os.write(fd, b"cmd=get_maxes\ncmd=abort exitcode=0\n")
    os._exit(0)
elif how == "deaf":
    while True:
        os.write(fd, b"cmd=get_maxes\n" * 100)
os.read(0 if how == "stranger" else fd, 1)
import time

time.sleep(300)
PYTHON
for case in "stranger:does not speak PMI-1" "long:a line of more than 4096 bytes" "deaf:does not read the answers" \
    "leaves:MPI_Abort with exit code 0"; do
    run 60 --standalone --nproc-per-node=2 --pmi --max-restarts=0 python3 "$work/wrong.py" "${case%%:*}"
    expect_code 137
    expect_in "$work/run.err" "${case#*:}"
done
expect_nothing_left

say "a worker that comes to a barrier twice before the other node has come is ended, and nothing else"
cat >"$work/twice.py" <<'PYTHON'
import os
import time

os.write(int(os.environ["PMI_FD"]), b"cmd=init pmi_version=1 pmi_subversion=1\n" +
         (b"cmd=barrier_in\n" * 3 if os.environ["RANK"] == "0" else b""))
time.sleep(300)
PYTHON
two_nodes --pmi -- --nproc-per-node=1 --max-restarts=0 python3 "$work/twice.py"
for node in n0 n1; do
    join $node 60
    expect_code 137
done
expect_in "$work/n0.err" 'it asks PMI for more while it waits at a barrier: "cmd=barrier_in"'
expect_nothing_left
