# shellcheck shell=bash disable=SC2034
# What the end-to-end tests share: real processes of build/bin, marked, waited for, and counted at the end. Sourced.
#
# Every ddprun started here carries DDPRUN_TEST_MARK in its environment, and so does all that it starts, whoever its
# parent is in the end: what is left of a job is what still has the mark.
set -euo pipefail

e2e=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$e2e/../.." && pwd)
bin=${DDPRUN_BIN:-$root/build/bin}
ddprun=$bin/ddprun
train=$bin/train
slurmlab=$root/tests/tools/slurmlab
work=$(mktemp -d)
export TMPDIR=$work/tmp # what a job leaves in it is counted too
mkdir "$TMPDIR"
mark=e2e-$$-$RANDOM
code=0   # of the last run or join
story="" # what is being tried; said when it fails

# A caller's own job must not colour ours.
for name in $(compgen -e); do
    case $name in SLURM_* | PET_* | TORCHELASTIC_* | RANK | WORLD_SIZE | LOCAL_RANK | MASTER_*) unset "$name" ;; esac
done
export OMP_NUM_THREADS=1

say() { story=$*; echo "- $story"; }

fail() {
    echo "FAILED: $story: $*" >&2
    local file
    for file in "$work"/*.out "$work"/*.err; do
        [[ -s $file ]] || continue
        echo "--- ${file##*/}" >&2
        tail -n 40 "$file" >&2
    done
    exit 1
}

# Ends the test as skipped; in CI nothing may be.
skip() {
    [[ ${CI:-false} == true ]] && fail "would be skipped: $*"
    echo "skipped: $*"
    exit 77
}
need_root() { ((EUID == 0)) || skip "needs root"; }
need_localhost() { getent ahosts localhost >/dev/null || skip "localhost has no address here, which stock torchrun needs (/etc/hosts)"; }
need_program() { command -v "$1" >/dev/null || skip "$1 is not installed"; }
need_built() {
    local name
    for name in "$@"; do [[ -x $bin/$name ]] || fail "$bin/$name is not built"; done
}

# Waits until a command succeeds: seconds, command… False when the time is over.
wait_until() {
    local end=$((SECONDS + $1)); shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.02
    done
}

# Process ids of the living that carry the mark (a zombie has no environment).
marked() { grep -lsz "^DDPRUN_TEST_MARK=$mark\$" /proc/[0-9]*/environ | cut -d/ -f3 || true; }
# Whether so many of those have exactly this command line (ddprun's own holds its workers', and more): words, how many.
count_is() {
    local id count=0
    for id in $(marked); do
        [[ $({ tr '\0' ' ' <"/proc/$id/cmdline"; } 2>/dev/null) != "$1 " ]] || count=$((count + 1))
    done
    ((count == $2))
}
in_tmpdir() { compgen -G "$TMPDIR/ddprun*" || true; } # ours: torch leaves folders of its own
nothing_left() { [[ -z $(marked) && -z $(in_tmpdir) ]]; }
expect_nothing_left() { # within so many seconds (2)
    wait_until "${1:-2}" nothing_left || fail "left: $(in_tmpdir) $(marked | xargs -r ps -o pid,ppid,stat,args -p)"
}

# Whether a run under timeout ended by itself; 137 may be a worker's code too: seconds, when it began.
in_time() { ((code != 124 && (code != 137 || SECONDS - $2 < $1))); }

# Runs ddprun to its end: seconds, arguments… Sets code; output in $work/run.out and run.err.
run() {
    local seconds=$1 begin=$SECONDS; shift
    code=0
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 "$seconds" "$ddprun" "$@" \
        >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    in_time "$seconds" "$begin" || fail "ddprun did not end in $seconds s"
}

# Empties a name's output, so that nobody takes what one of this name said before for the word of the next, which opens
# the files only once it runs.
forget() { : >"$work/$1.out"; : >"$work/$1.err"; }

# Starts ddprun in the background: name, arguments… Its process id is in ${pid[name]}, output in $work/NAME.out, .err.
declare -A pid
start() {
    local name=$1; shift
    forget "$name"
    DDPRUN_TEST_MARK=$mark "$ddprun" "$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    pid[$name]=$!
}
ended() { [[ ! -d /proc/$1 || $(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) == [ZX] ]]; }
# Waits for one that was started, sets code: name, seconds.
join() {
    wait_until "$2" ended "${pid[$1]}" || fail "$1 did not end in $2 s"
    code=0
    wait "${pid[$1]}" || code=$?
}

# A process with all its descendants, at one stroke, as a node is lost.
kill_tree() {
    local all=$1 next=$1
    while [[ -n $next ]]; do
        next=$(ps -o pid= --ppid "$(tr -s ' \n' ',' <<<"$next" | sed 's/^,//; s/,$//')" || true)
        all+=" $next"
    done
    # shellcheck disable=SC2086
    kill -KILL $all 2>/dev/null || true
}

expect_code() { ((code == $1)) || fail "exit code $code, not $1"; }
has() { grep -qE -- "$2" "$1" 2>/dev/null; }
expect_in() { has "$1" "$2" || fail "${1##*/} has no \"$2\""; } # file, pattern
expect_not_in() { ! has "$1" "$2" || fail "${1##*/} has \"$2\""; }
checksum_of() { grep -ho 'checksum=[^ ]*' "$@" | tail -n 1 || true; } # files

# A port for this test alone as long as it runs: below those that ddprun takes for its jobs (from 20000 on, some of them
# bound without listening, so that nobody sees them) and those that the kernel gives to clients. The claim is a link to
# the test's process id; that of a test which has ended is taken over.
claims=/tmp/ddprun-test-ports.$UID
free_port() {
    local port
    mkdir -p "$claims"
    while true; do
        port=$((10000 + RANDOM % 10000))
        if ! ln -s "$$" "$claims/$port" 2>/dev/null; then
            kill -0 "$(readlink "$claims/$port")" 2>/dev/null || rm -f "$claims/$port"
            continue
        fi
        grep -qi "$(printf ':%04X 0' "$port")" /proc/net/tcp /proc/net/tcp6 2>/dev/null || { echo "$port"; return; }
    done
}

# Whether somebody listens on a port of this host.
listens() { grep -qi "$(printf ':%04X 0[0-9A-F:]* 0A ' "$1")" /proc/net/tcp /proc/net/tcp6 2>/dev/null; }

_finish() {
    local result=$?
    set +e
    declare -F clean_up >/dev/null && clean_up
    marked | xargs -r kill -9 2>/dev/null
    [[ ! -d $claims ]] || find "$claims" -lname "$$" -delete 2>/dev/null
    rm -rf "$work"
    exit "$result"
}
trap _finish EXIT
