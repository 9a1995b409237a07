#!/usr/bin/env bash
# The GPT in C++ (build/bin/gpt) and in PyTorch (examples/python/gpt.py): the same numbers, each reads the other's
# model, both resume after a crash; what is wrong with the input is named. Argument: debian (python3-torch) or current
# (the virtual environment of tests/run.sh).
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
need_built ddprun gpt
need_localhost
[[ -d /usr/share/common-licenses ]] || skip "no /usr/share/common-licenses"

# A model of 0.06 M parameters: options of both programs.
tiny=(--layers 2 --width 48 --heads 3 --context 32 --batch 4 --sample 40)
cpp() { # workers, options of gpt…
    run 60 --standalone --no-label --nproc-per-node="$1" --max-restarts="${restarts:-0}" "$bin/gpt" --backend gloo \
        "${tiny[@]}" "${@:2}"
}
evaluated() { # workers, file: the validation that gpt finds
    run 60 --standalone --no-label --nproc-per-node="$1" "$bin/gpt" --backend gloo --batch 4 --evaluate "$2"
    validation
}
twin() { # workers, options of gpt.py…
    run 200 --standalone --no-label --nproc-per-node="$1" --max-restarts="${restarts:-0}" --python="$python" \
        "$root/examples/python/gpt.py" "${tiny[@]}" "${@:2}"
}
losses() { grep -oE '^step=[0-9]+ loss=[0-9.]+' "$work/run.out"; }
validation() { grep -oE '^validation=[0-9.]+' "$work/run.out" | cut -d= -f2; }
# Whether two numbers differ by no more than a bound: a, b, bound.
near() {
    awk -v a="$1" -v b="$2" -v most="$3" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d <= most && -d <= most) }'
}

# The greatest difference that was seen is 3e-5. It grows with the steps, because sums have other orders.
most=2e-4
[[ -z ${DDPRUN_LONG:-} ]] && worlds=(1 2) || worlds=(1 2 4)
for world in "${worlds[@]}"; do
    say "50 steps on $world ranks: each loss is that of PyTorch, within $most"
    cpp "$world" --steps 50 --log-every 1 --accumulate 2 --save "$work/cpp.safetensors"
    expect_code 0
    losses >"$work/cpp.losses"
    ours=$(validation)
    twin "$world" --steps 50 --log-every 1 --accumulate 2 --save "$work/python.safetensors"
    expect_code 0
    losses >"$work/python.losses"
    paste -d' ' "$work/cpp.losses" "$work/python.losses" | tr = ' ' | awk -v most="$most" '
        { d = $4 - $8; d = d < 0 ? -d : d; if (d > worst) worst = d; if ($2 != $6) bad = 1; if (NR == 1) first = $4 }
        END { print NR " steps, greatest difference " worst ", loss from " first " to " $4
              exit !(NR == 50 && !bad && worst <= most && $4 < first - 0.7) }' ||
        fail "the losses differ, or did not fall"
    near "$ours" "$(validation)" "$most" || fail "validation $ours, and $(validation) in Python"
    expect_in "$work/run.out" '^--- sample$'
done

say "a model of C++ is evaluated in Python, and the other way round"
twin 2 --evaluate "$work/cpp.safetensors"
expect_code 0
near "$ours" "$(validation)" 1e-5 || fail "Python finds $(validation) in a model of $ours"
theirs=$(evaluated 3 "$work/python.safetensors")
twin 1 --evaluate "$work/python.safetensors"
near "$theirs" "$(validation)" 1e-5 || fail "C++ finds $theirs in a model of $(validation)"

say "a crash and a resume end with the same bits"
cpp 2 --steps 60 --snapshot-dir "$work/calm" --metrics "$work/metrics.jsonl"
expect_code 0
calm=$(checksum_of "$work/run.out")
[[ -n $calm ]] || fail "no checksum"
expect_in "$work/metrics.jsonl" '"step":60,.*"validation":'
restarts=1 cpp 2 --steps 60 --snapshot-dir "$work/crash" --crash-at-step 45 --crash-rank 1
expect_code 0
expect_in "$work/run.out" '^resumed from snapshot-0*40-g0 at step 40$'
[[ $(checksum_of "$work/run.out") == "$calm" ]] || fail "$(checksum_of "$work/run.out") is not $calm"

say "a rank is killed while a snapshot is under way: the other one says so and ends"
start killed --standalone --no-label --nproc-per-node=2 --max-restarts=0 --shutdown-timeout=60 "$bin/gpt" \
    --backend gloo "${tiny[@]}" --steps 1000000 --snapshot-dir "$work/killed" --snapshot-every 1
wait_until 30 has "$work/killed.out" '^step=20 loss=' || fail "no step 20"
for worker in $(marked); do
    tr '\0' '\n' <"/proc/$worker/environ" | grep -qx RANK=1 && kill -KILL "$worker"
done
join killed 45
expect_code 137
expect_in "$work/killed.err" '^gpt: rank 0 of 2: .* the connection to rank 1 was closed'

say "another number of workers goes on, with what is left of the epoch"
cpp 3 --steps 70 --snapshot-dir "$work/crash"
expect_code 0
expect_in "$work/run.out" '^resumed from snapshot-0*60-g[01] at step 60$'
expect_in "$work/run.out" '^step=70 loss='

say "a snapshot of another model, and of another text"
cpp 2 --steps 70 --snapshot-dir "$work/calm" --layers 1 --width 96
expect_code 2
expect_in "$work/run.err" 'tensor "transformer\.wte\.weight" is .* in snapshot .*; is it a snapshot of another model'
head -c 20000 /usr/share/common-licenses/GPL-3 >"$work/text"
cpp 2 --steps 70 --snapshot-dir "$work/calm" --text "$work/text"
expect_code 2
expect_in "$work/run.err" 'snapshot .* was written with another --text; use another --snapshot-dir'

say "in Python, too: a crash, a resume, the same result"
twin 2 --steps 30 --snapshot "$work/calm.pt"
expect_code 0
calm=$(validation)
restarts=1 twin 2 --steps 30 --snapshot "$work/crash.pt" --crash-at-step 25 --crash-rank 1
expect_code 0
expect_in "$work/run.out" '^resumed from .* at step 20$'
[[ $(validation) == "$calm" ]] || fail "validation $(validation), undisturbed $calm"

if [[ ${1:-debian} == current ]]; then
    say "the commands of its page, with a small model; that of the large one needs a GPU"
    grep -E '^    (build/bin|trainer)/' "$root/examples/gpt/README.md" | grep -v -- '--size gpt2' |
        sed -E "s|--steps 525|--steps 20|; /--snapshot-dir|gpt\.py/ s|\$| --steps 20|; /--steps/ s|\$| ${tiny[*]}|
            s|build/bin/|$bin/|g; s|examples/|$root/&|; s|^ *(trainer/)|$root/\1|" >"$work/page.sh"
    [[ $(wc -l <"$work/page.sh") == 6 ]] || fail "other commands than before: see what they need"
    /usr/bin/python3 -c 'import matplotlib' 2>"$work/import.err" || sed -i '/plot.py/d' "$work/page.sh"
    mkdir "$work/page"
    (cd "$work/page" && PATH=/usr/bin:$PATH DDPRUN_TEST_MARK=$mark timeout 150 bash -euo pipefail "$work/page.sh") \
        >"$work/page.out" 2>&1 || fail "a command failed"
    [[ -s $work/page/2.jsonl && -n $(ls "$work/page/gpt.snapshots") ]] || fail "no figures or no snapshot"
fi

# Wrong input: what is said about it, options. The program ends with 2 before the workers meet, so there is no second
# attempt.
wrong() {
    restarts=auto cpp 2 --steps 5 "${@:2}"
    expect_code 2
    expect_in "$work/run.err" "$1"
    expect_not_in "$work/run.err" '^ddprun: restart '
}
say "wrong input is named, and not tried again"
wrong 'the text has [0-9]+ characters, but the vocabulary only 20; raise --vocabulary' --vocabulary 20
wrong "--save $work/none/model cannot be written: $work/none: No such file or directory; name a file" \
    --save "$work/none/model"
wrong '--save /dev/null cannot be written: it is no file; name one' --save /dev/null
wrong '--width 48 is not a multiple of --heads 5' --heads 5
head -c 200 "$work/text" >"$work/short"
wrong 'the text has 200 characters, but --context 32 needs at least 321' --text "$work/short"
wrong "cannot read the text $work/none; --text FILE names another one" --text "$work/none"
wrong 'unknown option "--epochs"; see gpt --help' --epochs 3
wrong '--layers has no effect with --init or --evaluate, whose file has a shape' --init "$work/cpp.safetensors"
tiny=()
wrong '--steps has no effect with --evaluate; see gpt --help' --evaluate "$work/cpp.safetensors"
wrong '--precision has no effect on CPUs' --precision f32
wrong '--crash-rank 2 is none of the ranks 0 to 1' --crash-at-step 3 --crash-rank 2
{ cat "$work/text"; printf '\001'; } >"$work/odd"
wrong 'the text has the character 1 at byte 20000, which is not among the [0-9]+ characters' --text "$work/odd" \
    --init "$work/cpp.safetensors"
wrong "the model $work/text cannot be read: safetensors: " --init "$work/text"
say "wrong input of the twin, too"
for option in "--log-every 0" "--save $work/none/model" "--init $work/text"; do
    # shellcheck disable=SC2086
    twin 1 --steps 5 $option
    expect_code 2
    expect_in "$work/run.err" "^gpt\.py: (error: argument )?${option%% *}|^gpt\.py: the model $work/text cannot be loaded"
    expect_not_in "$work/run.err" 'Traceback'
done
say "a model that is larger than the memory is one line"
code=0
(ulimit -v 1000000; exec "$bin/gpt" --backend gloo --layers 4 --width 20000 --heads 4) \
    >"$work/run.out" 2>"$work/run.err" || code=$?
expect_code 1
expect_in "$work/run.err" '^gpt: there is not enough memory for 1920[0-9] M parameters and batches of 8 windows; take a'
[[ $(wc -l <"$work/run.err") == 1 ]] || fail "more than one line"
expect_nothing_left 5
