#!/usr/bin/env bash
# A rank of transformers' Trainer is killed while it writes a checkpoint, on two nodes with one folder. With
# --set-aside-torn one node moves the torn folder away and the next generation resumes from the one before it; if that
# one fails as well, it is moved back. Without the option, and where the folder is not ours, nothing is moved.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_root
need_built ddprun
python=$root/build/programs-venv/bin/python
[[ -x $python ]] || skip "no $python; tests/run.sh --long makes it"
export PYTHONWARNINGS=ignore TRANSFORMERS_VERBOSITY=error HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES=''
export PYTHONDONTWRITEBYTECODE=1 SAVE_STEPS=10
cd "$work"

# Both nodes run to their end, with one code: more options…
both() {
    local rank at
    at=$(free_port)
    for rank in 0 1; do
        start "node$rank" --nnodes=2 --node-rank="$rank" --rdzv-endpoint="127.0.0.1:$at" --rdzv-id="$mark" \
            --nproc-per-node=1 --no-label --framework-stop=auto --python "$python" "$@" \
            "$e2e/frameworks/torn_script.py" 25
    done
    join node0 480
    expect_code "$wanted"
    join node1 120
    expect_code "$wanted"
    expect_nothing_left 5
}
# The lines of the workers of both nodes that have this. A report may repeat them.
lines() { cat "$work"/node?.err | grep -c "^ddprun: .*$1" || true; }
# The steps from which generations have trained, of rank 0 or 1.
begins() { grep -oP 'trains from step \K[0-9]+' "$work/node$1.out" | paste -sd ' '; }
folders() { find . -maxdepth 2 -name '*checkpoint-*' -printf '%P\n' | sort | paste -sd ' '; }
over() { rm -rf transformers* .ddprun-saves*; }

say "one node moves the torn folder away, and both resume from the one before it"
wanted=0
both --set-aside-torn --max-restarts=1
for node in 0 1; do [[ $(begins "$node") == "0 10" ]] || fail "node $node trains from $(begins "$node")"; done
(($(lines 'checkpoint-20 is torn: its save had begun and not ended') == 1)) || fail "not one node has moved it"
expect_not_in node0.err 'moves no checkpoint|cannot'
[[ $(folders) == "transformers.torn-checkpoint-20 transformers/checkpoint-10 transformers/checkpoint-20 "\
"transformers/checkpoint-25" ]] || fail "there are $(folders)"
[[ -s transformers.torn-checkpoint-20/optimizer.pt && ! -e transformers.torn-checkpoint-20/trainer_state.json ]] ||
    fail "the torn one has lost what it had"
[[ -e transformers/checkpoint-20/trainer_state.json ]] || fail "step 20 was not saved again"
[[ -z $(compgen -G '.ddprun-saves*') ]] || fail "the record is left"
over

say "it is moved back if the older one fails as well"
wanted=1
OLDER=bad both --set-aside-torn --max-restarts=2
for node in 0 1; do [[ $(begins "$node") == "0 10 20" ]] || fail "node $node trains from $(begins "$node")"; done
(($(lines 'is torn: its save') == 1 && $(lines 'checkpoint-10 fails as well, so') == 1)) || fail "the lines are wrong"
[[ $(folders) == "transformers/checkpoint-10 transformers/checkpoint-20" ]] || fail "there are $(folders)"
over

say "another user's folder is named, and stays"
OTHERS=yes both --set-aside-torn --max-restarts=1
(($(lines 'moves no checkpoint: .*/checkpoint-20 is another user') == 1)) || fail "it is not named once"
[[ $(folders) == "transformers/checkpoint-10 transformers/checkpoint-20" ]] || fail "there are $(folders)"
over

say "without the option nothing is moved, and no record is kept"
both --max-restarts=1
[[ $(folders) == "transformers/checkpoint-10 transformers/checkpoint-20" ]] || fail "there are $(folders)"
expect_in node0.err 'checkpoint-20 is torn: it lacks'
[[ -z $(compgen -G '.ddprun-saves*') ]] || fail "there is a record"
