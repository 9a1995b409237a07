# shellcheck shell=bash disable=SC2034
# What the end-to-end tests share: real processes of build/bin are marked, waited for, and counted at the end. Sourced.
#
# Every ddprun that is started here has DDPRUN_TEST_MARK in its environment. So has everything that it starts, even when
# it gets another parent. What is left of a job is what still has the mark.
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
export XDG_RUNTIME_DIR=$work/sockets # of the jobs' private sockets
mkdir -m 700 "$XDG_RUNTIME_DIR"
export XDG_CACHE_HOME=$work/cache # of PyTorch, matplotlib and others
# For a shell in a mount namespace of its own that mounts over a folder above this clone: evaluated before and after.
export CLONE=$root
keep_clone='mount --bind "$CLONE" /mnt' clone_back='mkdir -p "$CLONE" && mount --bind /mnt "$CLONE" && umount /mnt'
mark=e2e-$$-$RANDOM
code=0   # exit code of the last run or join
story="" # title of the story that is being told; fail() prints it

# If this test runs inside a job, the variables of that job must not reach the jobs under test.
for name in $(compgen -e); do
    case $name in SLURM_* | PET_* | TORCHELASTIC_* | RANK | WORLD_SIZE | LOCAL_RANK | MASTER_*) unset "$name" ;; esac
done
export OMP_NUM_THREADS=1
# Standard error is a file here, so lines would begin with the time. output.sh tests that.
export PET_TIMESTAMPS=never

# Begins a story: its title.
say() { story=$*; echo "- $story"; }

# Ends the test: prints the reason and the end of every output file.
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

# Ends the test as skipped. In CI that is a failure.
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

# Process ids of the living processes with the mark (a zombie has no environment).
marked() { grep -lsz "^DDPRUN_TEST_MARK=$mark\$" /proc/[0-9]*/environ | cut -d/ -f3 || true; }
# Whether exactly so many marked processes have this command line: words, how many. The whole line must be equal,
# because ddprun's own contains that of its workers.
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

# Whether a run under timeout ended by itself: seconds, when it began. 124 and 137 are the codes of timeout, but 137 may
# be a worker's, too.
in_time() { ((code != 124 && (code != 137 || SECONDS - $2 < $1))); }

# Runs ddprun to its end: seconds, arguments… Sets code; output in $work/run.out and run.err.
run() {
    local seconds=$1 begin=$SECONDS; shift
    code=0
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 "$seconds" "$ddprun" "$@" \
        >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    in_time "$seconds" "$begin" || fail "ddprun did not end in $seconds s"
}

# Empties the output files of a name. A process opens them only once it runs, and until then a test would read the
# output of the last process of this name.
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
# Waits until a process that was started has ended, and sets code: name, seconds.
join() {
    wait_until "$2" ended "${pid[$1]}" || fail "$1 did not end in $2 s"
    code=0
    wait "${pid[$1]}" || code=$?
}

# Kills a process and all its descendants at once, as if its node were lost: process id.
kill_tree() {
    local all=$1 next=$1
    while [[ -n $next ]]; do
        next=$(ps -o pid= --ppid "$(tr -s ' \n' ',' <<<"$next" | sed 's/^,//; s/,$//')" || true)
        all+=" $next"
    done
    # shellcheck disable=SC2086
    kill -KILL $all 2>/dev/null || true
}

# Root only: makes $work a folder that other users can enter, and puts copies of programs there. The clone, or TMPDIR,
# may lie where they cannot. Call it before anything is started: programs…
for_others() {
    chmod 711 "$work"
    if ! setpriv --reuid=54321 --regid=54321 --clear-groups test -x "$work/."; then
        rm -rf "$work"
        work=$(mktemp -d /tmp/tmp.XXXXXXXXXX)
        chmod 711 "$work"
        export TMPDIR=$work/tmp XDG_CACHE_HOME=$work/cache
        mkdir "$TMPDIR"
    fi
    (($# == 0)) || cp "$@" "$work/"
}

expect_code() { ((code == $1)) || fail "exit code $code, not $1"; }
has() { grep -qE -- "$2" "$1" 2>/dev/null; }
expect_in() { has "$1" "$2" || fail "${1##*/} has no \"$2\""; } # file, pattern
expect_not_in() { ! has "$1" "$2" || fail "${1##*/} has \"$2\""; }
# The last checksum that train has printed.
checksum_of() { grep -ho 'checksum=[^ ]*' "$@" | tail -n 1 || true; } # files

# Prints a port that no other test uses while this one runs. It lies below the ports that ddprun takes for its jobs
# (from 20000 on; some are bound without listening, so /proc does not show them) and those that the kernel gives to
# clients. The claim is a link to the test's process id; the claim of a test that has ended is taken over.
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

# Whether a process listens on a port of this host: port.
listens() { grep -qi "$(printf ':%04X 0[0-9A-F:]* 0A ' "$1")" /proc/net/tcp /proc/net/tcp6 2>/dev/null; }

# At the end, also after a failure. A test that defines clean_up has it called first.
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
