#!/usr/bin/env bash
# Twenty tasks of a new user's first hour, each as it is typed, with what must be seen. No Slurm, no PyTorch. It
# depends on few words of any message: what must be seen is what the user looks for.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_program python3
mkdir "$work/bin" "$work/home"
ln -s "$ddprun" "$work/bin/ddprun"
export PATH=$work/bin:$PATH
cd "$work/home"

# Types a line into a shell: line. Sets code; output in $work/run.out and run.err.
type_line() {
    code=0
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 30 bash -c "$1" >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    ((code != 124)) || fail "no end in 30 s: $1"
}
see() { expect_in "$work/run.out" "$1"; }      # pattern, on standard output
see_log() { expect_in "$work/run.err" "$1"; }  # pattern, on standard error

cat >train.py <<'END'
import os, sys
rank, attempt = int(os.environ["RANK"]), os.environ["TORCHELASTIC_RESTART_COUNT"]
print(f"hello from rank {rank} of {os.environ['WORLD_SIZE']}, attempt {attempt}, {sys.argv[1:]}", flush=True)
if "--crash" in sys.argv and rank == 1 and attempt == "0":
    raise ValueError("the loss is not a number")
END

say "1. what is this?"
for help in '-h 45' '--help 100'; do
    type_line "ddprun ${help% *}"
    expect_code 0
    see '--nproc-per-node' && see '--help-all' && see 'Examples:'
    (($(wc -l <"$work/run.out") <= ${help#* })) || fail "${help% *} has $(wc -l <"$work/run.out") lines"
done

say "2. which version?"
type_line 'ddprun --version'
expect_code 0
see '^ddprun [0-9]+\.[0-9]+'

say "3. nothing behind the name"
type_line 'ddprun'
expect_code 2
see_log 'no program is given.*--help'

say "4. an own script, two workers"
type_line 'ddprun --standalone --nproc-per-node=2 train.py --epochs 3'
expect_code 0
see "hello from rank 0 of 2, attempt 0, \['--epochs', '3'\]" && see 'hello from rank 1 of 2'

say "5. torchrun's spelling"
type_line 'ddprun --standalone --nproc_per_node 2 -m train --epochs 3'
expect_code 0
see 'hello from rank 1 of 2'

say "6. a typing error in an option"
type_line 'ddprun --standalone --nprocs-per-node=2 train.py'
expect_code 2
see_log 'did you mean --nproc-per-node\?'

say "7. the script's name is wrong"
type_line 'ddprun --standalone trian.py'
expect_code 2
see_log 'trian\.py.*No such file.*did you mean train\.py\?'

say "8. the script crashes: what, where, which code?"
type_line 'ddprun --standalone --nproc-per-node=2 --max-restarts=0 train.py --crash'
expect_code 1
see_log 'rank 1' && see_log 'ValueError: the loss is not a number'

say "9. the same with a restart"
type_line 'ddprun --standalone --nproc-per-node=2 --max-restarts=1 train.py --crash'
expect_code 0
see 'hello from rank 1 of 2, attempt 1'

say "10. which exit code?"
type_line 'ddprun --standalone --max-restarts=0 bash -c "exit 17"'
expect_code 17

say "11. a worker's signal"
type_line 'ddprun --standalone --max-restarts=0 bash -c "kill -SEGV \$\$"'
expect_code 139
see_log 'SIGSEGV|signal 11'

say "12. the output of each rank in files"
type_line 'ddprun --standalone --nproc-per-node=2 --log-dir=logs --redirects=3 train.py'
expect_code 0
(($(find logs -name stdout.log | wc -l) == 2)) || fail "not two files: $(find logs)"
grep -rqs 'hello from rank 1' logs || fail "not in the files"

say "13. what would it do?"
type_line 'ddprun --dry-run --nnodes=2 --nproc-per-node=8 train.py'
expect_code 0
see 'would start 16 workers on 2 nodes' && see '--nproc-per-node +8  \(command line\)'
type_line 'ddprun --dry-run=json --standalone train.py | python3 -m json.tool'
expect_code 0
see '"format": "ddprun dry run"'

say "14. is this machine all right?"
type_line 'ddprun --check --standalone train.py'
((code == 0 || code == 69)) || fail "exit code $code"
see '^ +nodes +ok'

say "15. two nodes on one machine"
port=$(free_port)
type_line "
    ddprun --nnodes=2 --node-rank=1 --rdzv-endpoint=localhost:$port --local-addr=127.0.0.1 --nproc-per-node=2 train.py >second 2>&1 &
    ddprun --nnodes=2 --node-rank=0 --rdzv-endpoint=localhost:$port --local-addr=127.0.0.1 --nproc-per-node=2 train.py; code=\$?
    wait \$! && exit \$code"
expect_code 0
cat second >>"$work/run.out"
for rank in 0 1 2 3; do see "hello from rank $rank of 4"; done

say "16. the options in a file"
printf 'standalone = true\nnproc-per-node = 3\n' >my.toml
type_line 'ddprun --config=my.toml train.py'
expect_code 0
see 'hello from rank 2 of 3'

say "17. Ctrl-C"
# A terminal sends SIGINT to the whole group in the foreground; a shell starts what is behind & with SIGINT ignored, so
# the job is started by a program that resets it.
cat >wait.py <<'END'
import os, time
open(f"up.{os.environ['RANK']}", "x").close()
time.sleep(313)
END
up() { [[ -e up.0 && -e up.1 ]]; }
DDPRUN_TEST_MARK=$mark python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$ddprun" --standalone --nproc-per-node=2 wait.py >"$work/job.out" 2>"$work/job.err" </dev/null &
pid[job]=$!
wait_until 20 up || fail "the workers do not run"
kill -INT "${pid[job]}"
join job 20
expect_code 130
expect_nothing_left

say "18. in the background of a script SIGINT is ignored, and SIGTERM stops the job"
rm -f up.*
start job --standalone --nproc-per-node=2 wait.py
wait_until 20 up || fail "the workers do not run"
kill -INT "${pid[job]}"
# SIGINT is ignored: the kernel has it in the mask of ignored signals (bit 2), so it never comes.
(($(sed -n 's/^SigIgn:\t/0x/p' "/proc/${pid[job]}/status") & 2)) || fail "SIGINT is not ignored"
kill -TERM "${pid[job]}"
join job 20
expect_code 143
expect_nothing_left

say "19. one worker for each GPU; where there is none, that is said"
if compgen -G '/proc/driver/nvidia/gpus/*' >/dev/null; then
    type_line 'ddprun --standalone --nproc-per-node=gpu train.py'
    expect_code 0
else
    type_line 'ddprun --standalone --nproc-per-node=gpu train.py'
    expect_code 2
    see_log 'GPU'
fi

say "20. completion and the manual page"
type_line 'source <(ddprun --print-completion=bash) && complete -p ddprun'
expect_code 0
see '_ddprun ddprun'
type_line 'ddprun --print-man'
see '^\.SH EXIT STATUS'
expect_nothing_left
