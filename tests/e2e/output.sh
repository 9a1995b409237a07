#!/usr/bin/env bash
# What workers print: where it goes, that nothing is lost or torn, and that neither a slow reader nor a full disk ends a
# job.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_program python3
# A frozen or full file system of this test must not stay mounted.
clean_up() {
    fsfreeze -u "$work/hangs" 2>/dev/null
    umount -l "$work/small" "$work/hangs" 2>/dev/null
}

# Prints the one path below the folder of the run, whose name ends in eight random characters: parent, rest of the path.
only() { local found=("$1"/*_????????/$2); ((${#found[@]} == 1)) && [[ -e ${found[0]} ]] || fail "not one $2 in $1: ${found[*]}"; echo "${found[0]}"; }
# Prints a file for a message: file.
lines_of() { sed 's/^/| /' "$@"; }
# Checks that a file has exactly these lines, in any order: file, lines.
is() { [[ $(sort "$1") == "$(sort <<<"$2")" ]] || fail "${1##*/} is: $(lines_of "$1")"; }
worker='echo "out of $RANK"; echo "err of $RANK" >&2'

say "without options: a prefix if there are several workers, none with one, and no files"
run 30 --standalone --nproc-per-node=2 -q bash -c "$worker"
expect_code 0
is "$work/run.out" $'[default0]:out of 0\n[default1]:out of 1'
is "$work/run.err" $'[default0]:err of 0\n[default1]:err of 1'
# A last line without an end is printed as it is.
run 30 --standalone -q bash -c "$worker; printf end"
is "$work/run.out" $'out of 0\nend'
[[ -z $(ls -A "$TMPDIR") ]] || fail "files: $(ls -A "$TMPDIR")"

say "with several nodes each line names its host and rank; called as torchrun, it looks as there"
# Two nodes of this host: called as, options of both….
two_nodes() {
    local program=$1 at rank; shift
    at=$(free_port)
    for rank in 0 1; do
        forget "$rank"
        DDPRUN_TEST_MARK=$mark "$program" --nnodes=2 --node-rank="$rank" --rdzv-backend=c10d --nproc-per-node=1 \
            --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=2 -q --no-python "$@" bash -c "$worker" \
            >"$work/$rank.out" 2>"$work/$rank.err" </dev/null &
        pid[$rank]=$!
    done
    for rank in 0 1; do join "$rank" 30; expect_code 0; done
}
host=$(hostname -s)
two_nodes "$ddprun"
for rank in 0 1; do is "$work/$rank.out" "[$host:$rank]:out of $rank"; done
two_nodes "$ddprun" --no-label
for rank in 0 1; do is "$work/$rank.out" "out of $rank"; done
ln -s "$ddprun" "$work/torchrun"
two_nodes "$work/torchrun" --log-dir="$work/as_torchrun" --tee=1
for rank in 0 1; do is "$work/$rank.out" "[default0]:out of $rank"; done

say "--tee and --redirects for each rank, in torchrun's folders"
run 30 --standalone --nproc-per-node=3 -q --rdzv-id=job --log-dir="$work/logs" --tee=0:3,1:1 --redirects=1:2,2:3 bash -c "$worker"
expect_code 0
is "$work/run.out" $'[default0]:out of 0\n[default1]:out of 1'
is "$work/run.err" '[default0]:err of 0'
attempt=$(only "$work/logs" attempt_0)
for rank in 0 1 2; do
    [[ $(<"$attempt/$rank/stdout.log") == "out of $rank" && $(<"$attempt/$rank/stderr.log") == "err of $rank" ]] || fail "rank $rank"
done

say "--local-ranks-filter keeps the other ranks from the console, but not from their files"
run 30 --standalone --nproc-per-node=2 -q --log-dir="$work/logs2" --tee=1 --local-ranks-filter=1 bash -c "$worker"
is "$work/run.out" '[default1]:out of 1'
is "$work/run.err" '[default1]:err of 1'
[[ $(<"$(only "$work/logs2" attempt_0/0/stdout.log)") == "out of 0" ]] || fail "no file of rank 0"

say "filtered files, and a template for the prefix"
run 30 --standalone --nproc-per-node=2 -q --role=actor --log-dir="$work/logs3" --tee=3 --log-line-prefix-template='<${role_name} ${rank}/${local_rank} ${other}> ' \
    --duplicate-stdout-filters='of 1,a,,b' bash -c "$worker; echo 'a,b'; echo 'a b'"
expect_code 0
is "$work/run.err" $'ddprun: warning: --log-line-prefix-template: unknown and left as written: other; use role_name, local_rank, rank or hostname
<actor 0/0 ${other}> err of 0\n<actor 1/1 ${other}> err of 1'
is "$(only "$work/logs3" attempt_0/filtered_stdout.log)" $'<actor 0/0 ${other}> a,b\n<actor 1/1 ${other}> a,b\n<actor 1/1 ${other}> out of 1'
[[ ! -e $(dirname "$(only "$work/logs3" attempt_0/filtered_stdout.log)")/filtered_stderr.log ]] || fail "a file that nobody asked for"

say "each run and each generation has a folder of its own"
# Each worker waits for the other one, so that both have printed before the failure stops them.
for _ in 1 2; do
    rm -f "$work"/said.*
    run 30 --standalone --nproc-per-node=2 -q --max-restarts=1 --log-dir="$work/logs4" -r3 bash -c '
        echo "generation $TORCHELASTIC_RESTART_COUNT"; touch "$0/said.$RANK"
        until [[ -e $0/said.0 && -e $0/said.1 ]]; do sleep 0.02; done; exit $((1 - TORCHELASTIC_RESTART_COUNT))' "$work"
    expect_code 0
done
for generation in 0 1; do
    (($(grep -lx "generation $generation" "$work"/logs4/*/attempt_$generation/[01]/stdout.log | wc -l) == 4)) || fail "generation $generation"
done

say "without --log-dir the files are in TMPDIR"
run 30 --standalone -r1 bash -c "$worker"
expect_in "$work/run.err" "the workers' output goes to files in $TMPDIR/torchelastic_"
[[ $(<"$(only "$TMPDIR"/torchelastic_* attempt_0/0/stdout.log)") == "out of 0" ]] || fail "no file"
rm -r "$TMPDIR"/torchelastic_*

# lines.py writes lines of many lengths, each with its rank, stream and number, in pieces that end anywhere. It also
# checks that all of them have arrived.
cat >"$work/lines.py" <<'END'
import os, sys
def line(rank, stream, number, size):
    return b"%d.%d line %d " % (rank, stream, number) + b"x" * (size - 1) + b"\n"
def sizes(rank, stream, count):
    return [1 + (number * 7919 + rank * 31 + stream) % 200 if number != count // 2 else 3_000_000 for number in range(count)]
if sys.argv[1] == "write":  # count: on both streams, in pieces that end anywhere
    rank, count = int(os.environ["RANK"]), int(sys.argv[2])
    streams = [b"".join(line(rank, s, n, size) for n, size in enumerate(sizes(rank, s, count))) for s in (1, 2)]
    at = 0
    while any(at < len(text) for text in streams):
        piece = 1 + at * 40503 % 70_000
        for fd, text in enumerate(streams, 1):
            rest = memoryview(text)[at:at + piece]
            while rest:
                rest = rest[os.write(fd, rest):]
        at += piece
else:  # check FILE WORKERS COUNT STREAMS: whole lines only, each once, each stream's in order
    found = {}
    for text in open(sys.argv[2], "rb"):
        if text.startswith(b"ddprun:"):
            continue
        prefix, _, rest = text.partition(b"]:")
        rank, stream = map(int, rest.split()[0].split(b"."))
        assert prefix == b"[default%d" % rank, text[:80]
        found.setdefault((rank, stream), []).append(rest)
    streams = [int(s) for s in sys.argv[5].split(",")]
    for rank in range(int(sys.argv[3])):
        for s in streams:
            expected = [line(rank, s, n, size) for n, size in enumerate(sizes(rank, s, int(sys.argv[4])))]
            assert found.pop((rank, s)) == expected, (rank, s)
    assert not found, found.keys()
END
# Checks what lines.py has written: file, workers, lines of each stream, streams.
whole() { python3 "$work/lines.py" check "$@" 2>"$work/check.err" || fail "$(tail -n 1 "$work/check.err")"; }

say "four ranks print long lines in pieces: none is torn, lost or out of order"
run 60 --standalone --nproc-per-node=4 -q --log-dir="$work/logs5" --tee=3 python3 "$work/lines.py" write 2000
expect_code 0
whole "$work/run.out" 4 2000 1
whole "$work/run.err" 4 2000 2
cat "$(only "$work/logs5" attempt_0/2/stdout.log)" | sed 's/^/[default2]:/' >"$work/one"
grep '^\[default2\]:' "$work/run.out" | cmp - "$work/one" || fail "a file lacks what the console has"

say "the same with stdout and stderr in one pipe"
DDPRUN_TEST_MARK=$mark timeout 60 "$ddprun" --standalone --nproc-per-node=4 -q python3 "$work/lines.py" write 2000 2>&1 </dev/null | cat >"$work/both"
whole "$work/both" 4 2000 1,2

say "a line that is too long for memory stays whole, and the other ranks wait for its end"
# Rank 0 prints 80 MiB without the end of a line. In the middle of that rank 1 prints a short line.
long='
import os
from time import sleep
piece, marks = b"x" * (1 << 20), os.environ["MARKS"]
if os.environ["RANK"] == "0":
    for i in range(80):
        os.write(1, piece)
        if i == 50:
            open(marks + "/amid", "w").close()
            while not os.path.exists(marks + "/short"):
                sleep(0.02)
    os.write(1, b"!\n")
else:
    while not os.path.exists(marks + "/amid"):
        sleep(0.02)
    os.write(1, b"short\n")
    open(marks + "/short", "w").close()'
mkdir "$work/marks"
MARKS=$work/marks run 60 --standalone --nproc-per-node=2 python3 -c "$long"
expect_code 0
[[ $(tr -s x <"$work/run.out") == $'[default0]:x!\n[default1]:short' ]] || fail "$(tr -s x <"$work/run.out" | cut -c 1-500)"
(($(tr -cd x <"$work/run.out" | wc -c) == 80 << 20)) || fail "not 80 MiB of it came"
expect_not_in "$work/run.err" 'longer than'

say "but not for ever: the line is cut, a message says so, and nothing of it is lost"
rm "$work"/marks/*
# Here rank 0 ends its line only when the short line is on the console.
MARKS=$work/marks CONSOLE=$work/run.out run 60 --standalone --nproc-per-node=2 --log-dir="$work/logs7" --tee=0:1 python3 -c '
import os, time
if os.environ["RANK"] == "0":
    for _ in range(80):
        os.write(1, b"x" * (1 << 20))
    open(os.environ["MARKS"] + "/amid", "w").close()
    while not b"short" in open(os.environ["CONSOLE"], "rb").read():
        time.sleep(0.1)
    os.write(1, b"!")
else:
    while not os.path.exists(os.environ["MARKS"] + "/amid"):
        time.sleep(0.02)
    os.write(1, b"short\n")'
expect_code 0
(($(tr -cd x <"$work/run.out" | wc -c) == 80 << 20)) || fail "not 80 MiB of it came"
(($(grep -c 'rank 0 has printed a line longer than 32 MiB, and others could not wait for its end' "$work/run.err") == 1)) || fail "not one line says so"
[[ $(grep -o '^[^x]*:short$' "$work/run.out") == '[default1]:short' ]] || fail "the line of the other is torn"
[[ $(tr -d x <"$work/run.out") == *'[default0]:!' ]] || fail "$(tr -s x <"$work/run.out" | cut -c 1-500)"
rm -rf "$work/logs7"

say "any bytes of a single worker come out unchanged, also without the end of a line"
head -c 5000000 /dev/urandom >"$work/bytes"
run 30 --standalone -q --log-dir="$work/logs6" --redirects=2 bash -c 'cat "$0"; cat "$0" >&2' "$work/bytes"
expect_code 0
cmp "$work/bytes" "$work/run.out" || fail "not the same on the console"
cmp "$work/bytes" "$(only "$work/logs6" attempt_0/0/stderr.log)" || fail "not the same in the file"

say "nothing is lost when a worker dies while it prints"
# By SIGKILL, without flushing, and by SIGSEGV.
for how in 'os.kill(os.getpid(), 9)' 'os._exit(3)' 'ctypes.string_at(0)'; do
    rm -rf "$work/logs7"
    run 30 --standalone --nproc-per-node=2 -q --max-restarts=0 --log-dir="$work/logs7" --tee=1 python3 -c '
import ctypes, os, time
if os.environ["RANK"] == "1":
    time.sleep(60)
text = b"".join(b"line %d\n" % n for n in range(100000)) + b"half a li"
while text:
    text = text[os.write(1, text):]
'"$how"
    ((code != 0 && code != 124)) || fail "exit code $code"
    { seq -f 'line %.0f' 0 99999; printf 'half a li'; } >"$work/expected"
    cmp "$work/expected" "$(only "$work/logs7" attempt_0/0/stdout.log)" || fail "the file"
    { sed 's/^/[default0]:/' "$work/expected"; echo; } | cmp - "$work/run.out" || fail "the console"
done

say "a console that closes does not end the job"
{ code=0; DDPRUN_TEST_MARK=$mark timeout 30 "$ddprun" --standalone --log-dir="$work/logs8" --tee=1 bash -c '
    for ((i = 0; i < 20000; i++)); do echo "line $i"; done; exit 5' 2>"$work/run.err" </dev/null || code=$?; echo $code >"$work/code"; } | head -n 1 >"$work/first"
[[ $(<"$work/code") == 5 ]] || fail "exit code $(<"$work/code")"
[[ $(<"$work/first") == "[default0]:line 0" ]] || fail "$(<"$work/first")"
(($(grep -c 'cannot write to stdout: Broken pipe; output to it is discarded from now on' "$work/run.err") == 1)) || fail "not told once"
(($(wc -l <"$(only "$work/logs8" attempt_0/0/stdout.log)") == 20000)) || fail "the file is not whole"

say "standard streams that are closed from the start do not end it, either"
# Runs ddprun with the redirections of the call, in which one stream is closed. The worker reads its stdin to the end.
run_closed() { code=0; DDPRUN_TEST_MARK=$mark timeout 30 "$ddprun" --standalone -q bash -c "cat || exit 7; [[ -c /dev/stdin ]] || exit 8; $worker; exit 6" || code=$?; }
run_closed <&- >"$work/run.out" 2>"$work/run.err"
expect_code 6
is "$work/run.out" 'out of 0'
run_closed </dev/null >&- 2>"$work/run.err"
expect_code 6
expect_in "$work/run.err" '^err of 0$'
run_closed </dev/null >"$work/run.out" 2>&-
expect_code 6
is "$work/run.out" 'out of 0'

say "what nobody reads is kept, then the workers wait; all of it comes when it is read"
mkfifo "$work/fifo"
# Open at both ends here, so that ddprun can open and fill it while nobody reads. 6>&- closes it in ddprun.
exec 6<>"$work/fifo"
# Starts ddprun with the pipe as its stdout: name, arguments…
start_into_fifo() {
    local name=$1; shift
    forget "$name"
    DDPRUN_TEST_MARK=$mark "$ddprun" --standalone "$@" >"$work/fifo" 2>"$work/$name.err" </dev/null 6>&- &
    pid[$name]=$!
}
# 100 MB, more than ddprun keeps (64 MiB). The file of the first argument says how far it is.
flood='
import os, sys
line = b"%08d " + b"x" * 990 + b"\n"
for n in range(100000):
    text = line % n
    while text:
        text = text[os.write(1, text):]
    if n % 1000 == 0:
        open(sys.argv[1], "w").write(str(n))
open(sys.argv[1], "w").write("done")'
start_into_fifo job --log-dir="$work/logs9" --tee=1 --no-label python3 -c "$flood" "$work/progress"
wait_until 30 has "$work/job.err" 'stdout is too slow: 64 MiB are waiting; workers that print wait until it catches up' || fail "not told"
# Whether the worker has made no progress for a moment.
stands() { local was=$(<"$work/progress"); sleep 0.3; [[ $(<"$work/progress") == "$was" ]]; }
wait_until 30 stands || fail "the worker goes on"
[[ $(<"$work/progress") != done ]] || fail "100 MB were taken"
# 64 MiB are 67,000 lines of 1 kB.
(($(<"$work/progress") > 60000)) || fail "the worker stands after $(<"$work/progress") lines"
head -c 100000000 <&6 >"$work/read"
join job 30
expect_code 0
(($(grep -c 'MiB are waiting' "$work/job.err") == 1)) || fail "told more than once"
sed 's/ .*//' "$work/read" | cmp - <(seq -f '%08.0f' 0 99999) || fail "lines are missing"
cmp "$work/read" "$(only "$work/logs9" attempt_0/0/stdout.log)" || fail "the file is not the same"

say "the JSON of the failure says how much of an unread stderr is lost"
mkfifo "$work/unread"
exec 7<>"$work/unread"
DDPRUN_TEST_MARK=$mark timeout 40 "$ddprun" --standalone --max-restarts=0 --log-dir="$work/logs12" bash -c '
    head -c 1000000 /dev/zero | tr "\0" x >&2; exit 5' >"$work/run.out" 2>"$work/unread" </dev/null 7>&- || code=$?
expect_code 5
exec 7>&-
python3 -c '
import json, sys
unread = json.load(open(sys.argv[1]))["unread_bytes"]
assert unread["stdout"] == 0 and 900000 <= unread["stderr"] <= 1000000, unread' "$(only "$work/logs12" failure.json)" ||
    fail "the failure's JSON does not say it"

say "--console-overflow=drop: the workers continue, the oldest lines are dropped and counted"
rm "$work/progress"
start_into_fifo job --console-overflow=drop --log-dir="$work/logs10" --tee=1 --no-label python3 -c "$flood" "$work/progress"
done_with_it() { [[ -e $work/progress && $(<"$work/progress") == done ]]; }
wait_until 60 done_with_it || fail "the worker does not go on"
timeout 30 cat <"$work/fifo" 6>&- >"$work/read" & reader=$!
join job 30
expect_code 0
exec 6>&-
wait "$reader" || fail "the reader's end did not come"
# Every line was either printed or counted as dropped.
lost=$(sed -n 's/^ddprun: warning: \([0-9]*\) lines for stdout dropped (the oldest), because it was too slow.*/\1/p' "$work/job.err")
((lost > 30000 && lost + $(wc -l <"$work/read") == 100000)) || fail "$lost lines dropped, $(wc -l <"$work/read") came"
! grep -qvxE '[0-9]{8} x{990}' "$work/read" || fail "a line is torn"
sed 's/ .*//' "$work/read" | sort -c || fail "out of order"
[[ $(tail -n 1 "$work/read") == 00099999* ]] || fail "the newest line is not there"
(($(wc -l <"$(only "$work/logs10" attempt_0/0/stdout.log)") == 100000)) || fail "the file is not whole"

say "a log folder that cannot be used: one line, and the output goes to the console"
touch "$work/plain"
run 30 --standalone --nproc-per-node=2 --log-dir="$work/plain" --redirects=3 bash -c "$worker; [[ -d \${TORCHELASTIC_ERROR_FILE%/*} ]]"
expect_code 0
expect_in "$work/run.err" "^ddprun: warning: folder $work/plain \(--log-dir\): Not a directory; output without a file goes to the console\$"
(($(grep -c "log-dir" "$work/run.err") == 1)) || fail "not one line"
is "$work/run.out" $'[default0]:out of 0\n[default1]:out of 1'
expect_nothing_left

# A file system in a file, which fsfreeze can stop.
mount_that_can_hang() {
    truncate -s 64M "$work/image" && mkfs.ext4 -q "$work/image" && mkdir "$work/hangs" && mount -o loop "$work/image" "$work/hangs"
}
if ((EUID == 0)) && mount_that_can_hang 2>/dev/null; then
    say "a file system that hangs longer than the lease does not end the job, and its files are whole in the end"
    at=$(free_port)
    for rank in 0 1; do
        start "node$rank" --nnodes=2 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=2 --max-restarts=0 \
            --log-dir="$work/hangs/$rank" --tee=1 --no-label bash -c '
            touch "$0/runs.$RANK"
            until [[ -e $0/go ]]; do sleep 0.05; done
            head -c 20000000 /dev/zero | tr "\0" "x" | fold -w 99; until [[ -e $0/end ]]; do sleep 0.05; done' "$work"
    done
    both_run() { [[ -e $work/runs.0 && -e $work/runs.1 ]]; }
    wait_until 20 both_run || fail "the workers do not run"
    fsfreeze -f "$work/hangs"
    touch "$work/go"
    for rank in 0 1; do
        wait_until 30 has "$work/node$rank.err" '/stdout.log is too slow: 8 MiB are waiting' || fail "node $rank does not tell"
    done
    sleep 2 # the lease once more
    ! has "$work/node0.err" 'generation 0 ends' || fail "the generation has ended"
    fsfreeze -u "$work/hangs"
    touch "$work/end"
    for rank in 0 1; do
        join "node$rank" 30
        expect_code 0
        # 20,000,000 bytes with an end of line after every 99.
        (($(wc -c <"$(only "$work/hangs/$rank" attempt_0/0/stdout.log)") == 20202020)) || fail "the file of node $rank is not whole"
        (($(tr -d '\n' <"$work/node$rank.out" | wc -c) == 20000000)) || fail "the console of node $rank"
    done

    # The keeper of node 0 stands still, so that generation 0 cannot end there while node 1 has its folders at last.
    say "workers whose folders are made after the keeper has died, and their generation with it, do not start any more"
    fsfreeze -f "$work/hangs"
    at=$(free_port)
    for rank in 0 1; do
        ((rank)) && logs=$work/hangs/late || logs=$work/late
        start "late$rank" --nnodes=2 --node-rank=$rank --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" --lease=20 --log-dir="$logs" --tee=1 \
            bash -c 'touch "$0/late.$TORCHELASTIC_RESTART_COUNT.$RANK"; ((TORCHELASTIC_RESTART_COUNT)) || exec sleep 342' "$work"
    done
    wait_until 20 test -e "$work/late.0.0" || fail "the worker of node 0 does not run"
    keeper=$(pgrep --parent "${pid[late0]}" -x job-keeper)
    kill -STOP "$keeper"
    pkill -KILL --parent "${pid[late1]}" -x job-keeper
    wait_until 20 has "$work/late1.err" 'the keeper has died' || fail "node 1 does not tell"
    fsfreeze -u "$work/hangs"
    wait_until 20 compgen -G "$work/hangs/late/*/attempt_0/*" >/dev/null || fail "no folder is made"
    sleep 0.5 # a worker would start within milliseconds
    [[ ! -e $work/late.0.1 ]] || fail "a worker of generation 0 starts on the new keeper"
    kill -CONT "$keeper"
    for rank in 0 1; do join "late$rank" 30; expect_code 0; done
    [[ -e $work/late.1.1 ]] || fail "generation 1 has not run"

    say "a job whose folders cannot be made yet can be stopped"
    fsfreeze -f "$work/hangs"
    start early --standalone --log-dir="$work/hangs/early" --tee=1 sleep 341
    wait_until 10 has "$work/early.err" 'generation 0: 1 node' || fail "it does not begin"
    kill -TERM "${pid[early]}"
    wait_until 10 has "$work/early.err" 'SIGTERM' || fail "the signal is not heeded"
    fsfreeze -u "$work/hangs"
    join early 20
    expect_code 143
    expect_nothing_left
fi

if ((EUID == 0)) && mkdir "$work/small" && mount -t tmpfs -o size=1M none "$work/small" 2>/dev/null; then
    say "a full disk is logged once and does not end the job"
    run 30 --standalone --nproc-per-node=2 --log-dir="$work/small" --tee=3 bash -c '
        head -c 3000000 /dev/zero | tr "\0" "x" | fold -w 99; head -c 3000000 /dev/zero | tr "\0" "x" | fold -w 99 >&2'
    expect_code 0
    (($(grep -c 'No space left on device; output that does not fit is discarded' "$work/run.err") == 1)) || fail "not told once"
    # 30,304 lines of each worker.
    (($(wc -l <"$work/run.out") == 60608)) || fail "the console has $(wc -l <"$work/run.out") lines"
    say "a job that ends before the full disk has refused its last lines says so, too"
    rm -r "${work:?}/small"/*
    for to in --tee=3 --redirects=3; do
        run 30 --standalone --log-dir="$work/small" "$to" bash -c 'head -c 1500000 /dev/zero | tr "\0" "x" | fold -w 99'
        expect_code 0
        (($(grep -c 'No space left on device; output that does not fit is discarded' "$work/run.err") == 1)) || fail "not told once"
    done
    say "the same with a disk that is full before the first worker starts"
    run 30 --standalone --nproc-per-node=2 --max-restarts=0 --log-dir="$work/small" --tee=3 bash -c "$worker; exit 4"
    expect_code 4
    expect_in "$work/run.out" 'out of [01]$'
fi
expect_nothing_left

say "ddprun's own lines carry the time where standard error is no terminal, and the last one says how the job ended"
PET_TIMESTAMPS=auto run 30 --standalone true
expect_code 0
stamp='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z'
expect_in "$work/run.err" "^$stamp ddprun: generation 0: 1 node, 1 worker\$"
[[ $(tail -n 1 "$work/run.err") =~ ^$stamp\ ddprun:\ the\ job\ has\ ended\ after\ [0-9.]+\ m?s,\ 1\ generation,\ exit\ code\ 0: ]] ||
    fail "the last line is not the end"

say "--status-every: a silent log tells that the job lives"
start lives --standalone --status-every=1 --no-python --nproc-per-node=1 sh -c \
    'echo "step=7 snapshot=5" >&$DDPRUN_PROGRESS_FD; until [ -e "$0/told" ]; do sleep 0.05; done' "$work"
wait_until 30 grep -Eq 'generation 0 has run for [0-9.]+ s, step 7.*, newest snapshot 5; 0 restarts so far$' "$work/lives.err" ||
    fail "no line tells how it stands"
touch "$work/told"
join lives 20
expect_code 0

say "--log-format=json: each line of ddprun's own is an object, and the report is one"
rm -f "$work"/said.*
run 30 --standalone --log-format=json --nproc-per-node=2 bash -c 'echo "{not json"; touch "$0/said.$RANK"
    until [[ -e $0/said.$((1 - RANK)) ]]; do sleep 0.02; done; exit $((3 + RANK))' "$work"
(($(grep -c 'not json' "$work/run.out") == 2)) || fail "the workers' lines have changed"
python3 - "$work/run.err" <<'END' || fail "see the lines"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert all(set(line) - {"report"} == {"time", "level", "node", "message"} for line in lines), lines
reports = [line["report"] for line in lines if "report" in line]
assert len(reports) == 1 and reports[0]["exit_code"] in (3, 4), reports
assert "first failure" in [line["message"] for line in lines if "report" in line][0]
END
