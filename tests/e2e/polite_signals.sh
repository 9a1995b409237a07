#!/usr/bin/env bash
# A signal that asks for something reaches the ranks and not their helpers: a rank with a handler saves, although it has
# child processes that die of the signal. A plain program ends with all that it has started. SIGUSR1 kills no rank that
# has no handler for it yet.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun

# A rank with a loader, as a DataLoader has them: a child in its group that dies of the signal, and whose death the rank
# takes for an error. Arguments: the folder of the test, and the signals that the rank handles.
cat >"$work/loads.py" <<'P'
import os, signal, sys, time

folder, rank, asked = sys.argv[1], os.environ["RANK"], []
loader = os.fork()
if loader == 0:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    time.sleep(600)
    os._exit(0)
for name in sys.argv[2:]:
    signal.signal(getattr(signal, "SIG" + name), lambda number, frame: asked.append(number))


def load():
    if os.waitpid(loader, os.WNOHANG)[0] != 0:
        sys.exit("the loader was killed")


open(f"{folder}/up.{rank}", "w").close()
while not asked:
    load()
    time.sleep(0.01)
for _ in range(30):  # some steps until all ranks know it
    load()
    time.sleep(0.01)
open(f"{folder}/saved.{rank}.{asked[0]}", "w").close()
os.kill(loader, signal.SIGKILL)
P
up() { [[ -e $work/up.0 && -e $work/up.1 ]]; }
both() { [[ -e $work/$1.0$2 && -e $work/$1.1$2 ]]; }
# Starts the job "job" with two workers, and waits until both run: arguments…
begin() {
    rm -f "$work"/{up,saved,heard}.*
    start job --standalone --nproc-per-node=2 --max-restarts=0 "$@"
    wait_until 30 up || fail "the workers do not run"
}

for warm in off always; do
    for signal in TERM HUP INT; do
        say "SIG$signal: a rank with a handler saves, and its loader lives as long as it (--warm=$warm)"
        number=$(kill -l $signal)
        # A shell starts ddprun with SIGINT ignored.
        [[ $signal == INT ]] && sent=TERM || sent=$signal
        begin --warm=$warm --stop-signal=$signal "$work/loads.py" "$work" $signal
        kill -$sent "${pid[job]}"
        join job 30
        expect_code $((128 + $(kill -l $sent)))
        both saved ".$number" || fail "not both have saved"
        expect_not_in "$work/job.err" 'the loader was killed'
        expect_nothing_left
    done
done

say "a program below a shell saves, and the shell lives until it has"
begin bash -c 'python3 "$0/loads.py" "$0" TERM | cat; echo "then the rest of the script"' "$work"
kill -TERM "${pid[job]}"
join job 30
expect_code 143
both saved .15 || fail "not both have saved"
(($(grep -c 'then the rest' "$work/job.out") == 2)) || fail "the shell did not go on"
expect_nothing_left

say "a plain program ends at once, with all that it has started"
begin --shutdown-timeout=100 "$work/loads.py" "$work"
kill -TERM "${pid[job]}"
join job 30
expect_code 143
! compgen -G "$work/saved.*" || fail "saved without a handler"
expect_nothing_left

say "SIGUSR1: a rank that handles it keeps its loader, and the job goes on"
cat >"$work/pool.py" <<'P'
import multiprocessing, os, signal, sys, time

folder, rank = sys.argv[1], os.environ["RANK"]


def twice(x):
    return 2 * x


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda *_: open(f"{folder}/heard.{rank}", "w").close())
    with multiprocessing.get_context(sys.argv[2]).Pool(2) as pool:
        assert pool.map(twice, range(4)) == [0, 2, 4, 6]
        open(f"{folder}/up.{rank}", "w").close()
        while not os.path.exists(f"{folder}/heard.{rank}"):
            time.sleep(0.01)
        # A pool of which a process has died waits for its answer for ever.
        assert pool.map_async(twice, range(40)).get(30)[-1] == 78
P
for context in fork spawn forkserver; do
    begin "$work/pool.py" "$work" "$context"
    kill -USR1 "${pid[job]}"
    join job 60
    expect_code 0
    both heard "" || fail "not both have heard"
    expect_not_in "$work/job.err" 'was kept from'
    expect_nothing_left
done

say "SIGUSR1: a rank without a handler is spared and named, and gets the signal when it has one"
cat >"$work/late.py" <<'P'
import os, signal, sys, time

folder, rank = sys.argv[1], os.environ["RANK"]
open(f"{folder}/up.{rank}", "w").close()
while not os.path.exists(f"{folder}/go"):
    time.sleep(0.01)
heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
while not heard:
    time.sleep(0.01)
print("heard", flush=True)
P
for way in script shell; do
    command=("$work/late.py" "$work")
    [[ $way == script ]] || command=(bash -c 'python3 "$@"; exit $?' x "${command[@]}")
    rm -f "$work/go"
    begin "${command[@]}"
    kill -USR1 "${pid[job]}"
    wait_until 10 has "$work/job.err" 'SIGUSR1 was kept from ranks 0, 1, which would die of it' || fail "not named"
    touch "$work/go"
    join job 30
    expect_code 0
    (($(grep -c heard "$work/job.out") == 2)) || fail "not both have heard"
    expect_nothing_left
done

say "a rank that is spared and never handles SIGUSR1 ends as if nothing had come"
begin bash -c 'touch "$0/up.$RANK"; until [[ -e $0/end ]]; do sleep 0.05; done; exit 4' "$work"
kill -USR1 "${pid[job]}"
wait_until 10 has "$work/job.err" 'was kept from ranks 0, 1' || fail "not named"
touch "$work/end"
join job 30
expect_code 4
expect_nothing_left
