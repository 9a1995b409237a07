#!/usr/bin/env bash
# mnist and gpt_torch beside their twins in Python: the same numbers; crash and resume; files that the other one reads.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh" current
[[ -x $bin/mnist ]] || skip "no mnist: configure found no libtorch"
need_built ddprun gpt_torch
examples=$root/examples/python
[[ ${DDPRUN_LONG:-} ]] && worlds=(1 2 4) || worlds=(1 2)

# A training to its end, by name and number of workers: its output is in $work/NAME.out.
train() { # name, workers, program or script, options…
    local name=$1 workers=$2 kind=--no-python; shift 2
    [[ $1 != *.py ]] || kind=--python=$python
    for _ in 1 2 3; do
        run 200 --standalone --no-label --max-restarts=1 "$kind" --nproc-per-node="$workers" "$@"
        aborted_at_exit "$work/run.err" || break
    done
    cp "$work/run.out" "$work/$name.out"
    expect_code 0
}
# The greatest difference between the losses of two runs is at most this: names, limit, how many losses.
same_losses() {
    "$python" - "$work/$1.out" "$work/$2.out" "$3" "$4" <<'PYTHON' || fail "$1 and $2 differ"
import re, sys
mine, theirs = ([float(loss) for loss in re.findall(r"^step=\d+ loss=(\S+)", open(path).read(), re.M)]
                for path in sys.argv[1:3])
most = max(abs(a - b) for a, b in zip(mine, theirs))
print(f"{len(mine)} losses differ by at most {most:g}")
sys.exit(not (len(mine) == len(theirs) == int(sys.argv[4]) and most <= float(sys.argv[3]) and mine[-1] < mine[0]))
PYTHON
}
# What a run says at its end: name, key.
last() { grep -o "$2=[^ ]*" "$work/$1.out" | tail -n 1; }
same_result() { # names, key
    local mine theirs
    mine=$(last "$1" "$3") theirs=$(last "$2" "$3")
    [[ -n $mine && $mine == "$theirs" ]] || fail "$1: $mine, $2: $theirs"
}

for world in "${worlds[@]}"; do
    say "mnist on $world: 50 steps with the losses of PyTorch's DistributedDataParallel"
    # With one and two ranks all digits are equal; from three on a sum depends on the order of its terms.
    ((world > 2)) && limit=1e-4 || limit=0
    train "cc$world" "$world" "$bin/mnist" --steps 50 --log-every 1 --save "$work/cc$world.safetensors"
    train "py$world" "$world" "$examples/mnist.py" --steps 50 --log-every 1 --save "$work/py$world.safetensors"
    same_losses "cc$world" "py$world" "$limit" 50
done

say "each reads the other's network"
train cc_reads_py 2 "$bin/mnist" --evaluate "$work/py2.safetensors"
same_result cc_reads_py cc2 accuracy
train py_reads_cc 2 "$examples/mnist.py" --evaluate "$work/cc2.safetensors"
same_result py_reads_cc cc2 accuracy

say "a crash at step 35, resumed from a snapshot: the same bits"
train crash 2 "$bin/mnist" --steps 50 --log-every 1 --snapshot-dir "$work/s" --snapshot-every 20 \
    --crash-at-step 35 --crash-rank 1
expect_in "$work/crash.out" '^resumed from snapshot-000000000020-g0 at step 20$'
same_result crash cc2 checksum
say "the job goes on with another number of workers, from the snapshot after a step"
train three 3 "$bin/mnist" --steps 60 --snapshot-dir "$work/s" --snapshot-every 20
expect_in "$work/three.out" '^resumed from snapshot-000000000050-g1 at step 50$'
say "a snapshot of another seed is named, and the job does not try again"
run 60 --standalone --max-restarts=3 --no-python --nproc-per-node=1 "$bin/mnist" --steps 60 --seed 2 \
    --snapshot-dir "$work/s"
expect_code 2
expect_in "$work/run.err" 'was written with --seed 1, not 2; use another --snapshot-dir'
say "options without an effect are refused"
run 60 --standalone --no-python --nproc-per-node=1 "$bin/mnist" --lr 1 --evaluate "$work/py2.safetensors"
expect_code 2
expect_in "$work/run.err" '--lr has no effect with --evaluate; see mnist --help'
run 60 --standalone --no-python --nproc-per-node=1 "$bin/gpt_torch" --steps 9 --crash-at-step 3 --crash-rank 1
expect_code 2
expect_in "$work/run.err" '--crash-rank 1 is none of the ranks 0 to 0'
run 60 --standalone --no-python --nproc-per-node=1 "$bin/gpt_torch" --validate-every 9
expect_code 2
expect_in "$work/run.err" '--validate-every has no effect in gpt_torch; it is for gpt; see gpt_torch --help'
say "a result that could not be saved is named before the training"
run 60 --standalone --no-python --nproc-per-node=2 --max-restarts=0 "$bin/mnist" --steps 2 --save "$work/none/x"
expect_code 2
expect_in "$work/run.err" "--save $work/none/x cannot be written: $work/none: No such file or directory; name a file"
expect_not_in "$work/run.out" 'step='
say "numbers that are none end the job on all workers, without a snapshot of them"
run 60 --standalone --no-python --nproc-per-node=2 --max-restarts=0 "$bin/mnist" --steps 3 --lr 1000 --warm-up 0 \
    --snapshot-dir "$work/nan"
expect_code 1
expect_in "$work/run.err" 'mnist: the (loss|validation) at step 3 is not a finite number; try a lower --lr$'
[[ -z $(compgen -G "$work/nan/snapshot-*") ]] || fail "a snapshot of it"
say "the same in Python"
for _ in 1 2 3; do
    run 60 --standalone --no-label --python="$python" --nproc-per-node=2 --max-restarts=0 \
        "$examples/mnist.py" --steps 3 --lr 1000 --warm-up 0
    aborted_at_exit "$work/run.err" || break
done
expect_code 1
expect_in "$work/run.err" 'mnist.py: the (loss|validation) at step 3 is not a finite number; try a lower --lr$'
say "the twin in Python resumes, too"
train py_crash 2 "$examples/mnist.py" --steps 50 --snapshot "$work/mnist.pt" --crash-at-step 35 --crash-rank 1
expect_in "$work/py_crash.out" 'resumed from .* at step 20$'
same_result py_crash cc2 validation

say "MNIST's files with the generated digits in them: the numbers of the generated ones, in both languages"
mkdir "$work/data"
"$python" - "$examples" "$work/data" <<'PYTHON'
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from mnist import made_digits
for prefix, count, seed in (("train", 8192, 10), ("t10k", 2048, 20)):
    for name, data in zip(("images-idx3", "labels-idx1"), made_digits(count, seed)):
        head = b"".join(n.to_bytes(4, "big") for n in (0x800 + data.dim(), *data.shape))
        pathlib.Path(sys.argv[2], f"{prefix}-{name}-ubyte").write_bytes(head + bytes(data.flatten().tolist()))
PYTHON
train files 2 "$bin/mnist" --steps 50 --log-every 1 --data "$work/data"
same_result files cc2 checksum
train py_files 2 "$examples/mnist.py" --evaluate "$work/cc2.safetensors" --data "$work/data"
same_result py_files cc2 validation
say "a snapshot of other digits, and of another program"
run 60 --standalone --no-python --nproc-per-node=1 --max-restarts=0 "$bin/mnist" --samples 8000 --snapshot-dir "$work/s"
expect_code 2
expect_in "$work/run.err" 'it was written with another set of digits; use another --snapshot-dir$'
run 60 --standalone --no-python --nproc-per-node=1 --max-restarts=0 "$bin/gpt_torch" --steps 60 --snapshot-dir "$work/s"
expect_code 2
expect_in "$work/run.err" 'gpt_torch has not written it: it lacks "heads"; use another --snapshot-dir$'
say "a bad file is one line with the file, and the job does not try again"
truncate -s -1 "$work/data/t10k-labels-idx1-ubyte"
for program in "auto --no-python $bin/mnist" "0 --python=$python $examples/mnist.py"; do
    # shellcheck disable=SC2086
    run 60 --standalone --no-label --nproc-per-node=1 --max-restarts=$program --data "$work/data"
    expect_code 2
    [[ $(grep -c '^mnist.*t10k-labels-idx1-ubyte .*; copy it again$' "$work/run.err") == 1 ]] || fail "not one line"
done
labels=$work/data/train-labels-idx1-ubyte
run 60 --standalone --no-python --nproc-per-node=1 "$bin/mnist" --evaluate "$labels"
expect_code 2
expect_in "$work/run.err" "the network $labels: safetensors: "

say "the commands of the examples' page, with fewer digits"
awk '/^```sh$/ {on = 1; next} /^```$/ {on = 0} on' "$root/examples/README.md" |
    sed "s|build/bin/mnist|& --samples 512 --epochs 1|; s|build/bin/|$bin/|g" >"$work/page.sh"
/usr/bin/python3 -c 'import matplotlib' 2>"$work/import.err" || sed -i '/plot.py/d' "$work/page.sh"
(cd "$root" && PATH=/usr/bin:$PATH OUT=$work DDPRUN_TEST_MARK=$mark timeout 150 bash -euo pipefail "$work/page.sh") \
    >"$work/page.out" 2>&1 || fail "a command failed"
[[ $(cat "$work"/{scaled,plain}-{1,2,4}.jsonl | wc -l) == 6 ]] || fail "not six epochs"

say "gpt_torch: the losses of gpt.py"
shape=(--layers 2 --heads 2 --width 32 --context 32 --batch 4 --steps 30 --log-every 1 --sample 40)
train gpt_cc 2 "$bin/gpt_torch" "${shape[@]}" --accumulate 2 --save "$work/gpt.safetensors"
train gpt_py 2 "$examples/gpt.py" "${shape[@]}" --accumulate 2
same_losses gpt_cc gpt_py 1e-5 30
say "gpt_torch: a crash and a restart end with the same bits, and Python reads the file"
train gpt_crash 2 "$bin/gpt_torch" "${shape[@]}" --accumulate 2 --snapshot-dir "$work/g" --snapshot-every 10 \
    --crash-at-step 25
expect_in "$work/gpt_crash.out" '^resumed from snapshot-000000000020-g0 at step 20$'
same_result gpt_crash gpt_cc checksum
say "a snapshot of another text"
cat /usr/share/common-licenses/{Artistic,[B-M]*} >"$work/other.text"
run 60 --standalone --no-python --nproc-per-node=1 --max-restarts=0 "$bin/gpt_torch" "${shape[@]}" --steps 40 \
    --text "$work/other.text" --snapshot-dir "$work/g"
expect_code 2
expect_in "$work/run.err" 'it was written with another text; use another --snapshot-dir$'
train gpt_read 2 "$examples/gpt.py" --batch 4 --evaluate "$work/gpt.safetensors"
theirs=$(last gpt_read validation) mine=$(last gpt_cc validation)
"$python" -c 'import sys; a, b = (float(x.split("=")[1]) for x in sys.argv[1:]); sys.exit(abs(a - b) > 1e-5)' \
    "$mine" "$theirs" || fail "$theirs is not $mine"
say "a step uses the last one's memory again: ten more steps touch no new pages"
faults() { # steps
    "$python" - "$bin/gpt_torch" "$1" <<'PYTHON'
import resource, subprocess, sys
subprocess.run([sys.argv[1], "--steps", sys.argv[2], "--batch", "2", "--sample", "0"], check=True, capture_output=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt)
PYTHON
}
few=$(faults 5) && more=$(faults 15) || fail "gpt_torch failed alone"
((more - few < 2500)) || fail "$((more - few)) pages in ten steps"
expect_nothing_left 5
