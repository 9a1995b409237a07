#!/usr/bin/env bash
# The fork server in the life of a job: what it imports, what it never touches, and what happens when it is lost.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_program python3
source "$e2e/warm_common.sh"
new_python

is_ready() { (($(grep -c "$ready" "$work/job.err") >= $1)); }
seen() { (($(grep -c "$1" "$work/job.out") >= $2)); } # pattern, how often
lines() { if [[ -e $1 ]]; then wc -l <"$1"; else echo 0; fi; }

# A folder for tests/e2e/warm/restarts.py.
restarts_folder() {
    new_folder "$1"
    cp "$e2e/warm/restarts.py" "$folder/train.py"
    printf 'VALUE = 1\nopen("%s/imports", "a").write("once\\n")\n' "$folder" >"$folder/lib/library.py"
    printf 'VALUE = 1\nopen("%s/packages", "a").write("once\\n")\n' "$folder" | package mpmath 1.3.0
    echo 'VALUE = 1' >"$folder/mine.py"
}

# A job of two workers that runs it, up to its first generation.
start_restarts() {
    restarts_folder "$1"; shift
    start job --standalone --no-label -v --nproc-per-node="${workers:-2}" --max-restarts=9 --python "$python" "$@" \
        "$folder/train.py" "$folder"
    wait_until 20 seen 'generation 0' "${workers:-2}" || fail "generation 0 has not started"
}
end_restarts() { # generation
    touch "$folder/last.$1" "$folder/go.$1"
    join job 20
    expect_code 0
    expect_nothing_left 5
}

say "a restart comes from the server, which imports what is on the list, and nothing else"
start_restarts restart
wait_until 30 is_ready 1 || fail "the server is not ready"
# Slurm sends the signals of scancel to all processes of a step, also to the server.
for signal in USR1 USR2 HUP TERM; do kill -$signal "$(server)"; done
[[ $(<"/proc/$(server)/oom_score_adj") == 1000 ]] || fail "the server does not go first when memory runs out"
(($(lines "$folder/packages") == 3)) || fail "two workers and a server have imported the package $(lines "$folder/packages") times"
(($(lines "$folder/imports") == 2)) || fail "the user's library was imported by another process than the two workers"
touch "$folder/go.0"
wait_until 20 seen 'generation 1 rank [01] library 1 mine 1 package 1 job-keeper' 2 || fail "generation 1 is not there"
(($(lines "$folder/packages") == 3)) || fail "the package was imported again"
expect_not_in "$work/job.err" 'cold, because'

say "a changed file of the user is read anew, and a changed package makes the start cold"
echo 'VALUE = 2' >"$folder/mine.py"
sed -i 's/VALUE = 1/VALUE = 22/' "$folder/lib/library.py"
touch "$folder/go.1"
wait_until 20 seen 'generation 2 rank [01] library 22 mine 2 package 1 job-keeper' 2 || fail "generation 2 has old files"
(($(lines "$folder/packages") == 3)) || fail "the package was imported again"
sed -i 's/VALUE = 1/VALUE = 23/' "$site/mpmath.py"
touch "$folder/go.2"
wait_until 20 seen 'generation 3 rank [01] library 22 mine 2 package 23 job-keeper' 2 || fail "generation 3 has an old package"
expect_in "$work/job.err" 'start cold, because .*site-packages/mpmath.py has changed'

say "then there is a new server; one that is killed is missed by nobody"
wait_until 30 is_ready 2 || fail "there is no second server"
kill -KILL "$(server)"
touch "$folder/go.3"
wait_until 20 seen 'generation 4 rank [01] library 22' 2 || fail "generation 4 is not there"
expect_in "$work/job.err" 'start cold, because the fork server has ended'
end_restarts 4

say "a script that reports nothing restarts warm, too, and only what fails cold is a crash loop"
# One worker leaves a CPU free, so the server is prepared at once.
REPORTS_NOTHING=1 workers=1 start_restarts silent --crash-loop=2
wait_until 30 is_ready 1 || fail "the server is not ready"
touch "$folder/go.0"
wait_until 20 seen 'generation 1 rank' 1 || fail "generation 1 is not there"
(($(lines "$folder/packages") == 2)) || fail "the package was imported again"
expect_not_in "$work/job.err" 'cold, because'
touch "$folder/go.1"
wait_until 20 seen 'generation 2 rank' 1 || fail "the failure of a warm worker has ended the job"
expect_in "$work/job.err" 'start cold, because the failure may be a crash loop'
touch "$folder/go.2"
join job 20
expect_code 3
expect_in "$work/job.err" 'crash loop: 3 generations in a row'
expect_nothing_left 5

say "a server that stands still holds up a restart for a few seconds"
start_restarts frozen
wait_until 30 is_ready 1 || fail "the server is not ready"
kill -STOP "$(server)"
touch "$folder/go.0"
wait_until 30 seen 'generation 1 rank' 2 || fail "generation 1 is not there"
expect_in "$work/job.err" 'start cold, because the fork server has not answered for 5.0 s'
end_restarts 1

say "nothing of the server outlives a ddprun that is killed"
start_restarts killed
wait_until 30 is_ready 1 || fail "the server is not ready"
kill -KILL "${pid[job]}"
join job 10
expect_nothing_left 10

say "a restart before there is a server is cold, and says so"
restarts_folder soon
echo 'import time; time.sleep(1)' >>"$site/mpmath.py"
touch "$folder/go.0"
start job --standalone --no-label -v --nproc-per-node=2 --max-restarts=9 --python "$python" "$folder/train.py" "$folder"
wait_until 20 seen 'generation 1 rank' 2 || fail "generation 1 is not there"
expect_in "$work/job.err" 'start cold, because (the last generation has ended before a fork server was prepared|the fork server is still importing|the script has imported nothing)'
end_restarts 1

say "a generation that ends while its workers wait for the server never starts"
new_folder waits
package mpmath 1.3.0 <<<'import time; time.sleep(2)'
cat >"$folder/train.py" <<'END'
import os, sys
import mpmath
sys.stdout.write("generation %s\n" % os.environ["TORCHELASTIC_RESTART_COUNT"])
END
start job --standalone --no-label -v --nproc-per-node=2 --max-restarts=3 --warm=always --python "$python" "$folder/train.py"
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
        --python "$python" "$@" "$folder/train.py" "$folder"
}
node job 0
node other 1 --warm=off
wait_until 20 seen 'generation 0' 1 || fail "generation 0 has not started"
wait_until 30 is_ready 1 || fail "the server is not ready"
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
join other 20
expect_code 0
expect_nothing_left 5

# Runs a script until it has failed once, when it is known whether a server is ready (or has said something else): the
# script's text comes from standard input, and waits for $folder/go.
play() { # [what the server says]
    rm -f "$folder/go"
    cat >"$folder/train.py"
    start job --standalone --no-label -v --nproc-per-node=2 --max-restarts=1 --python "$python" "$folder/train.py" "$folder/go"
    wait_until 40 has "$work/job.err" "${1:-$ready}|no worker can be forked, because" || fail "no word of a server"
    touch "$folder/go"
    join job 30
    expect_code 0
    expect_nothing_left 5
}
script='
import os, sys, time
import mpmath
generation, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
end = time.monotonic() + 60
while not os.path.exists(sys.argv[1]) and time.monotonic() < end: time.sleep(0.01)
if generation == "0": os._exit(3)
'

say "what is not on the list, in another version than on it, or not where packages are, is never imported early"
refused() { # reason
    play <<<"$script"
    expect_in "$work/job.err" "start cold, because $1"
}
new_folder refused
package unlisted 1.0 <<<'VALUE = 1'
package mpmath 1.3.0 <<<'import unlisted'
refused 'mpmath imports unlisted, which is not on the list'
package mpmath 1.3.0 <<<'import library'
echo 'VALUE = 1' >"$folder/lib/library.py"
refused 'mpmath imports library from .*/lib$'
package mpmath 1.3.0 <<<'import mine'
echo 'VALUE = 1' >"$folder/mine.py"
refused "mpmath imports mine from $folder"
rm -r "$site"/mpmath-*
package mpmath 99.9 <<<'VALUE = 1'
refused 'mpmath imports mpmath 99.9, which is not on the list'
rm -r "$site"/mpmath*
echo 'VALUE = 1' >"$folder/lib/mpmath.py"
refused 'mpmath imports mpmath from .*/lib$'
rm "$folder/lib/mpmath.py"

say "a package that leaves more behind than modules makes the start cold"
while IFS='|' read -r reason text; do
    package mpmath 1.3.0 <<<"$text"
    refused "$reason"
done <<'END'
an imported module has started a thread|import threading, time; threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
an imported module has opened /etc/hostname|import os; FILE = os.open("/etc/hostname", os.O_RDONLY)
an imported module has started a process|import subprocess; subprocess.Popen(["sleep", "1000"])
the import of mpmath changes the umask|import os; os.umask(0o77)
the import of mpmath changes the working directory|import os; os.chdir("/tmp")
the import of mpmath changes the signal handlers|import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN)
END

say "a later import that may not be done early is left out alone"
package mpmath 1.3.0 <<<'VALUE = 1'
package six 1.16.0 <<<'import unlisted'
left_out='workers import the rest themselves, because six imports unlisted, which is not on the list'
# Rank 0 imports it when rank 1 has made progress.
late='import mpmath
while os.environ["RANK"] == "0" and not os.path.exists(sys.argv[1] + ".made"): time.sleep(0.01)
import six
os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
open(sys.argv[1] + ".made", "w").close()'
play "$left_out" <<<"${script/import mpmath/$late}"
expect_not_in "$work/job.err" 'cold, because'
expect_in "$work/job.err" "$left_out"
rm -r "$site"/six*

say "what a package prints, sets and registers when it is imported comes with its import, in each worker"
new_folder effects
cat >"$folder/effects.py" <<'END'
import atexit, logging, os, sys, warnings
sys.stdout.write("printed at import\n")
sys.stderr.write("an error at import\n")
os.environ["WRITTEN_AT_IMPORT"] = "yes"
warnings.filterwarnings("ignore", message="nothing")
LOG = logging.getLogger("mpmath.log")
LOG.setLevel(logging.DEBUG)
atexit.register(lambda: sys.stdout.write("the package ends\n"))
END
package mpmath 1.3.0 <"$folder/effects.py"
play <<'END'
import atexit, logging, os, sys, time, warnings
names = list(sys.modules)
atexit.register(lambda: sys.stdout.write("the script ends\n"))
before = ("WRITTEN_AT_IMPORT" in os.environ, len(warnings.filters), "mpmath.log" in logging.root.manager.loggerDict,
          "mpmath" in sys.modules, "argparse" in names)
import mpmath
after = (os.environ["WRITTEN_AT_IMPORT"], len(warnings.filters), logging.getLogger("mpmath.log").level, mpmath.__spec__.name,
         sorted(name for name in sys.modules if "ddprun" in name))
generation, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
sys.stdout.write("generation %s %s %s\n" % (generation, before, after))
sys.stdout.flush()
os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
end = time.monotonic() + 60
while not os.path.exists(sys.argv[1]) and time.monotonic() < end: time.sleep(0.01)
if generation == "0": os._exit(3)
END
expect_not_in "$work/job.err" 'cold, because'
cmp <(sed -n 's/^generation 0 //p' "$work/job.out") <(sed -n 's/^generation 1 //p' "$work/job.out") || fail "another state"
(($(grep -c '^printed at import$' "$work/job.out") == 4)) || fail "not each worker has printed what the import prints"
(($(grep -c '^an error at import$' "$work/job.err") == 4)) || fail "not each worker has the import's error"
[[ $(grep 'ends$' "$work/job.out" | tail -n 1) == 'the script ends' ]] || fail "what is registered first ends last"

say "the user's sitecustomize comes first; one that looks at the rank makes the start cold"
new_folder custom
package mpmath 1.3.0 <<<'import os; VALUE = os.environ["MODE"]'
printf 'import os\nos.environ["MODE"] = "custom"\nos.write(1, b"customized\\n")\n' >"$folder/lib/sitecustomize.py"
play <<<"$script
sys.stdout.write('%s %s\n' % (generation, mpmath.VALUE))"
expect_not_in "$work/job.err" 'cold, because'
(($(grep -c '^1 custom$' "$work/job.out") == 2)) || fail "the package has not seen what sitecustomize sets"
(($(grep -c '^customized$' "$work/job.out") == 4)) || fail "sitecustomize has printed $(grep -c '^customized$' "$work/job.out") times"
for text in 'os.environ.get("RANK")' 'dict(os.environ)'; do
    printf 'import os\nos.environ["MODE"] = "custom"\nWHO = %s\n' "$text" >"$folder/lib/sitecustomize.py"
    refused 'a sitecustomize reads (RANK|all variables)'
done

say "a worker that fails early after a warm start makes the next one cold; if that fares better twice, all are"
new_folder early
package mpmath 1.3.0 <<<'import _thread; SELF = _thread.get_native_id()'
cat >"$folder/train.py" <<'END'
import os, sys, time
import mpmath
# What no import of the list does: it has kept something of the process.
warm = mpmath.SELF != os.getpid()
generation = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
sys.stdout.write("generation %d %s\n" % (generation, "warm" if warm else "cold"))
if not warm: os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
sys.exit(5 + generation if generation < 5 else 0)
END
run 60 --standalone --no-label -v --max-restarts=9 --crash-loop=9 --warm=always --python "$python" "$folder/train.py"
expect_code 0
[[ $(<"$work/run.out") == $'generation 0 warm\ngeneration 1 cold\ngeneration 2 warm\ngeneration 3 cold\ngeneration 4 cold\ngeneration 5 cold' ]] ||
    fail "other generations"
expect_in "$work/run.err" 'start cold, because the workers have failed early after a warm start'
expect_in "$work/run.err" 'start cold, because twice a cold start has fared better'

say "where the failure of a warm worker would be a crash loop, a cold generation follows"
sed -i 's/^if not warm.*/time.sleep(10.5 if warm else 0)/; s/^sys.exit.*/sys.exit(5 if warm else 0)/' "$folder/train.py"
run 60 --standalone --no-label -v --max-restarts=9 --crash-loop=1 --warm=always --python "$python" "$folder/train.py"
expect_code 0
[[ $(<"$work/run.out") == $'generation 0 warm\ngeneration 1 cold' ]] || fail "other generations"
expect_in "$work/run.err" 'start cold, because the failure may be a crash loop'

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

say "a check says what a server would save, and why a start would be cold"
package mpmath 1.3.0 <<<'import json, decimal'
echo 'import mpmath' >"$folder/train.py"
check() { # what its row says, arguments…
    local row=$1; shift
    run 40 --check --standalone "$@"
    expect_in "$work/run.out" "^  warm  *$row"
    expect_nothing_left 5
}
check 'ok .* import [0-9]* modules; a cold worker reads [0-9]* files for them, with [0-9]* looks' --python "$python" "$folder/train.py" go
check '- .*no Python workers, or --warm=off' --warm=off --python "$python" "$folder/train.py"
check '- .*no Python workers' true
check '- .*cold starts, because the interpreter does not read a sitecustomize' --python "$folder/python3" "$folder/train.py"
echo 'import json' >"$folder/train.py"
check '- .*cold starts, because the script imports nothing that may be imported early' --python "$python" "$folder/train.py"
[[ -z $(ls "$TMPDIR") ]] || fail "the check has left $(ls "$TMPDIR")"

say "torchrun's name means cold starts, unless warm ones are asked for"
restarts_folder named
ln -s "$ddprun" "$work/torchrun"
ddprun=$work/torchrun start job --standalone --nproc-per-node=2 --max-restarts=9 --python "$python" "$folder/train.py" "$folder"
wait_until 20 seen 'generation 0' 2 || fail "generation 0 has not started"
sleep 2.5 # a server would be prepared a second after the first import
[[ -z $(server) ]] || fail "there is a server"
touch "$folder/go.0"
wait_until 20 seen 'generation 1' 2 || fail "generation 1 has not started"
expect_not_in "$work/job.err" 'cold, because'
end_restarts 1

say "a temporary folder without room makes the start cold, and no worker sees half a file of ours"
if ((EUID == 0)) && unshare --mount true 2>/dev/null; then
    inside=$(mktemp -d -p /var/tmp)
    echo 'import os, sys; sys.stdout.write("ran %d\n" % sum(name.startswith("DDPRUN_WARM") for name in os.environ))' >"$inside/small.py"
    for size in 8k 24k 36k; do
        code=0
        # shellcheck disable=SC2016
        DDPRUN_TEST_MARK=$mark timeout 30 unshare --mount bash -c \
            "$keep_clone"'; for where in /dev/shm /tmp; do mount -t tmpfs -o size="$0" none "$where"; done; '"$clone_back"'
            cd / && exec "$@"' "$size" \
            env -u TMPDIR -u PYTHONPATH "$ddprun" --standalone --no-label --nproc-per-node=3 --warm=always \
            "$inside/small.py" >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
        expect_code 0
        (($(grep -c '^ran 0' "$work/run.out") == 3)) || fail "$size: the workers have run otherwise"
        expect_in "$work/run.err" 'start cold, because there is no room'
        expect_not_in "$work/run.err" 'sitecustomize'
    done
    rm -r "$inside"
fi
