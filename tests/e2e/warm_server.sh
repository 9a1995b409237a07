#!/usr/bin/env bash
# The fork server in the life of a job: what it imports, what it leaves out, and what happens when it is lost.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_program python3
source "$e2e/warm_common.sh"
export PYTHONDONTWRITEBYTECODE=1

ready() { (($(grep -c 'a fork server for warm starts is ready' "$work/job.err") >= $1)); }
seen() { (($(grep -c "$1" "$work/job.out") >= $2)); } # pattern, how often

# A folder for tests/e2e/warm/restarts.py.
restarts_folder() {
    new_folder "$1"
    cp "$e2e/warm/restarts.py" "$folder/train.py"
    printf 'import os\nVALUE = 1\nopen("%s/imports", "a").write("once\\n")\n' "$folder" >"$folder/lib/library.py"
    echo 'VALUE = 1' >"$folder/mine.py"
}

# A job of two workers that runs it, up to its first generation.
start_restarts() {
    restarts_folder "$1"; shift
    start job --standalone --no-label -v --nproc-per-node=2 --max-restarts=9 "$@" "$folder/train.py" "$folder"
    wait_until 20 seen 'generation 0' 2 || fail "generation 0 has not started"
}
end_restarts() { # generation
    touch "$folder/last.$1" "$folder/go.$1"
    join job 20
    expect_code 0
    expect_nothing_left 5
}

say "a restart comes from the server, which imports what the workers have imported"
start_restarts restart --warm=auto
wait_until 30 ready 1 || fail "the server is not ready"
[[ $(<"/proc/$(server)/oom_score_adj") == 1000 ]] || fail "the server does not go first when memory runs out"
imports=$(wc -l <"$folder/imports")
((imports == 3)) || fail "two workers and a server have imported the library $imports times"
touch "$folder/go.0"
wait_until 20 seen 'generation 1 rank [01] library 1 mine 1 job-keeper' 2 || fail "generation 1 is not there"
(($(wc -l <"$folder/imports") == 3)) || fail "the library was imported again"

say "a changed file of the user is read anew, and a changed library makes the start cold"
echo 'VALUE = 2' >"$folder/mine.py"
touch "$folder/go.1"
wait_until 20 seen 'generation 2 rank [01] library 1 mine 2 job-keeper' 2 || fail "generation 2 has old files"
(($(wc -l <"$folder/imports") == 3)) || fail "the library was imported again"
sed -i 's/VALUE = 1/VALUE = 22/' "$folder/lib/library.py"
touch "$folder/go.2"
wait_until 20 seen 'generation 3 rank [01] library 22 mine 2 job-keeper' 2 || fail "generation 3 has an old library"
expect_in "$work/job.err" 'started cold, because .*lib/library.py has changed'

say "then there is a new server; one that is killed is missed by nobody"
wait_until 30 ready 2 || fail "there is no second server"
kill -KILL "$(server)"
touch "$folder/go.3"
wait_until 20 seen 'generation 4 rank [01] library 22' 2 || fail "generation 4 is not there"
expect_in "$work/job.err" 'started cold, because the fork server has ended'
end_restarts 4

say "a server that stands still holds up a restart for a few seconds"
start_restarts frozen --warm=auto
wait_until 30 ready 1 || fail "the server is not ready"
kill -STOP "$(server)"
touch "$folder/go.0"
wait_until 30 seen 'generation 1 rank' 2 || fail "generation 1 is not there"
expect_in "$work/job.err" 'started cold, because the fork server has not answered for 5.0 s'
end_restarts 1

say "nothing of the server outlives a ddprun that is killed"
start_restarts killed --warm=auto
wait_until 30 ready 1 || fail "the server is not ready"
kill -KILL "${pid[job]}"
join job 10
expect_nothing_left 10

say "a generation that ends while its workers wait for the server never starts"
new_folder waits
echo 'import time; time.sleep(2)' >"$folder/lib/slow.py"
cat >"$folder/train.py" <<'END'
import os, sys
import slow
sys.stdout.write("generation %s\n" % os.environ["TORCHELASTIC_RESTART_COUNT"])
END
start job --standalone --no-label -v --nproc-per-node=2 --max-restarts=3 --warm=always "$folder/train.py"
there_is_a_server() { [[ -n $(server) ]]; }
wait_until 10 there_is_a_server || fail "there is no server"
pkill -KILL -P "${pid[job]}" -x job-keeper
join job 40
expect_code 0
[[ $(sort "$work/job.out") == $'generation 1\ngeneration 1' ]] || fail "other workers have run"
expect_nothing_left 5

say "nor do workers whose server answers too late, or never, when another node has failed meanwhile"
restarts_folder late
at=127.0.0.1:$(free_port)
node() { # name, number, arguments…
    local name=$1 number=$2; shift 2
    start "$name" --nnodes=2 --node-rank="$number" --rdzv-endpoint="$at" --rdzv-id="$mark" --no-label -v --max-restarts=9 \
        "$@" "$folder/train.py" "$folder"
}
node job 0 --warm=auto
node other 1 --warm=off
wait_until 20 seen 'generation 0' 1 || fail "generation 0 has not started"
wait_until 30 ready 1 || fail "the server is not ready"
kill -STOP "$(server)"
touch "$folder/go.0"
wait_until 20 has "$work/other.out" 'generation 1' || fail "generation 1 has not started on the other node"
touch "$folder/go.1"
wait_until 20 seen 'generation 2' 1 || fail "generation 2 has not started"
sleep 6 # the server has 5 s to answer
expect_not_in "$work/job.out" 'generation 1'
expect_not_in "$work/job.err" 'not answered for' # the end of the generation waits for nobody
touch "$folder/last.2" "$folder/go.2"
join job 20
expect_code 0
join other 20
expect_nothing_left 5

say "what reads a rank, starts a thread or opens a file while it is imported is left out, with what needs it"
new_folder left_out
cat >"$folder/lib/reader.py" <<'END'
import os
RANK = os.environ.get("RANK")
END
echo 'from reader import RANK' >"$folder/lib/user_of_reader.py"
cat >"$folder/lib/walker.py" <<'END'
import os
ALL = {key: value for key, value in os.environ.items() if key.startswith("WALKER_")}
COPY = len(dict(os.environ)) > 3
open(os.environ["COUNT"], "a").write("walker\n")
END
cat >"$folder/lib/threads.py" <<'END'
import threading, time
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
END
echo 'import os; FILE = os.open("/etc/hostname", os.O_RDONLY)' >"$folder/lib/opener.py"
echo 'import sys; print("printed at import"); print("an error at import", file=sys.stderr)' >"$folder/lib/printer.py"
echo 'import os; os.environ["WRITTEN_AT_IMPORT"] = "yes"' >"$folder/lib/writer.py"
cat >"$folder/train.py" <<'END'
import os, sys, threading, time
import walker, user_of_reader, threads, opener, printer, writer
assert user_of_reader.RANK == os.environ["RANK"], user_of_reader.RANK
assert os.environ["WRITTEN_AT_IMPORT"] == "yes"
sys.stdout.write("rank %s threads %s file %s\n" % (os.environ["RANK"], threading.active_count(), os.read(opener.FILE, 0)))
END
COUNT=$folder/count run 30 --standalone --no-label -v --nproc-per-node=3 --max-restarts=0 --warm=always "$folder/train.py"
expect_code 0
for rank in 0 1 2; do expect_in "$work/run.out" "^rank $rank threads 2 file b''\$"; done
(($(grep -c '^printed at import$' "$work/run.out") == 3)) || fail "not each worker has printed what the import prints"
(($(grep -c '^an error at import$' "$work/run.err") == 3)) || fail "not each worker has the import's error"
expect_in "$work/run.err" 'a fork server for warm starts is ready'
# The walk over all variables says nothing about the rank. Attempts that found something to leave out have imported it, too.
(($(wc -l <"$folder/count") <= 3)) || fail "the walker was imported by each worker"
expect_nothing_left 5

say "a worker that fails early after a warm start makes the next one cold; if that fares better twice, all are"
new_folder early
cat >"$folder/train.py" <<'END'
import json, os, sys, time
# What a library may do that does not bear a fork: it fails only where it was imported by another process.
warm = "argparse" in sys.modules
import argparse
generation = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
sys.stdout.write("generation %d %s\n" % (generation, "warm" if warm else "cold"))
if not warm: os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
sys.exit(5 if generation < 5 else 0)
END
run 60 --standalone --no-label -v --max-restarts=9 --crash-loop=9 --warm=always "$folder/train.py"
expect_code 0
[[ $(<"$work/run.out") == $'generation 0 warm\ngeneration 1 cold\ngeneration 2 warm\ngeneration 3 cold\ngeneration 4 cold\ngeneration 5 cold' ]] ||
    fail "other generations"
expect_in "$work/run.err" 'failed early after a warm start, so this one is cold'
expect_in "$work/run.err" 'all later starts are cold: twice a cold start has fared better'

say "an interpreter that does not read the bootstrap starts cold, and nothing runs twice"
new_folder options
echo 'import os, sys; sys.stdout.write("the script %s\n" % os.environ["RANK"])' >"$folder/train.py"
run 20 --standalone --no-label -v --nproc-per-node=2 --warm=always python3 -E "$folder/train.py"
expect_code 0
expect_in "$work/run.err" 'all starts are cold, because Python is called with -E'
printf '#!/bin/sh\nexec python3 -I "$@"\n' >"$folder/python3"
chmod +x "$folder/python3"
run 20 --standalone --no-label -v --nproc-per-node=2 --warm=always --python "$folder/python3" "$folder/train.py"
expect_code 0
(($(grep -c '^the script' "$work/run.out") == 2)) || fail "the script has run $(grep -c '^the script' "$work/run.out") times"
expect_in "$work/run.err" 'does not read a sitecustomize'
run 20 --standalone --no-label -v --nproc-per-node=2 --warm=always bash -c 'echo cold'
expect_code 0
expect_nothing_left 5
