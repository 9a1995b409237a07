#!/usr/bin/env bash
# The trainer's GPU half on this machine's GPUs: each collective in each type on NCCL with as many ranks as there are
# GPUs (one is enough), a step on several streams and in a CUDA graph, the examples' networks against themselves on the
# CPU, `train` on them, with a crash and a resume that end with the same bits. Then figures: the speed of the GPT with
# 124 M parameters and of its twin in PyTorch, what the library costs at world 1, the host's time for a bucket, the
# speed of a snapshot's copy beside kernels. NCCL's RAS is asked, too. Prints the GPU's name with each result.
#
# With two GPUs or more also: groups in rows and columns, a replica that drifts, a rank that is killed in a collective,
# a resume with half of the ranks and with all again, and the speed of all-reduces. Where compute-sanitizer is
# installed, the programs with kernels run under it; its whole output stays in BUILD_FOLDER/sanitizer.
# Exit 77: no GPU here.
#
#   tests/gpu.sh [BUILD_FOLDER]     default: build, configured and built when it is missing. A folder that has only bin/
#                                   and tests/ was built on another machine: its programs are run as they are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build}

gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null) || gpus=""
[[ -n $gpus ]] || { echo "no NVIDIA GPU here; not run"; exit 77; }
count=$(wc -l <<<"$gpus")
name=$(head -n 1 <<<"$gpus")
echo "$count x $name, driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"

if [[ ! -x $build/bin/gpt || -f $build/build.ninja ]]; then
    [[ -f $build/build.ninja ]] || cmake --preset release -B "$build" -DDDPRUN_TESTS=ON -DDDPRUN_CUDA=ON
    cmake --build "$build" --target ddprun train gpt trainer_nccl_test trainer_nccl_graph_test trainer_mlp_cuda_test \
        trainer_gpt_cuda_test gpu_step diagnosis_nccl_test
fi

DDPRUN_GPUS=$count "$build/tests/trainer_nccl_test"
echo "$name: collectives: passed"
"$build/tests/trainer_nccl_graph_test"
echo "$name: a step on several streams and in a graph: passed"
"$build/tests/trainer_mlp_cuda_test"
echo "$name: the network's losses, gradients and steps are those of the CPU: passed"

"$build/tests/trainer_gpt_cuda_test"
echo "$name: the GPT's losses, gradients and steps are those of the CPU: passed"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# One algorithm and one channel: only then are sums the same bits in each run.
export NCCL_ALGO=Ring NCCL_PROTO=Simple NCCL_MIN_CTAS=1 NCCL_MAX_CTAS=1
job() {
    local log=$1; shift
    "$build/bin/ddprun" --standalone --nproc-per-node="$count" --max-restarts=1 "$build/bin/train" --backend nccl \
        --steps 200 --snapshot-every 50 --snapshot-dir "$work/$log" "$@" >"$work/$log.log" 2>&1 ||
        { cat "$work/$log.log"; exit 1; }
    grep -o 'checksum=[^ ]*' "$work/$log.log" | tail -n 1
}
calm=$(job calm)
crashed=$(job crashed --crash-at-step 130)
[[ -n $calm && $calm == "$crashed" ]] || { echo "$name: resumed with other bits: $calm, $crashed"; exit 1; }
echo "$name: train, a crash and a resume: $calm, bit-equal"

# NCCL's RAS is asked while a job trains, for text and for JSON, which answers text before 2.28.7. What it has answered
# stays in BUILD_FOLDER/nccl_ras, and must be read.
answers=$build/nccl_ras
mkdir -p "$answers"
NCCL_RAS_ADDR=127.0.0.1:18928 "$build/bin/ddprun" --standalone --nproc-per-node="$count" "$build/bin/train" \
    --backend nccl --steps 100000000 >"$work/ras.log" 2>&1 &
asked=$!
ask_ras() { # lines before the answer, file, question
    {
        cat <<<"CLIENT PROTOCOL 2"$'\n'"$3VERBOSE STATUS" >&3 # in one piece
        timeout 20 cat <&3 | tail -n +"$(($1 + 1))" >"$2"
    } 3<>/dev/tcp/127.0.0.1/18928
}
for ((i = 0; i < 300; ++i)); do
    ask_ras 1 "$answers/answer.txt" "" 2>/dev/null && break
    sleep 0.1
done
ask_ras 2 "$answers/answer.json" $'SET FORMAT json\n' || { cat "$work/ras.log"; exit 1; }
kill "$asked"
wait "$asked" || true
DDPRUN_RAS_ANSWERS=$answers "$build/tests/diagnosis_nccl_test" --gtest_filter='*RecordedAnswers*'
echo "$name: NCCL's RAS: $(head -n 1 "$answers/answer.txt"): both of its answers are read"

if ((count > 1)); then
    # Half of the ranks go on from a snapshot of all, and all from a snapshot of the half. A mean loss says that it goes
    # on; bits depend on the number of ranks.
    for ranks in "$count" $((count / 2)) "$count"; do
        steps=$((${steps:-0} + 60))
        "$build/bin/ddprun" --standalone --nproc-per-node="$ranks" "$build/bin/train" --backend nccl --steps $steps \
            --snapshot-every 20 --snapshot-dir "$work/elastic" >"$work/elastic.log" 2>&1 ||
            { cat "$work/elastic.log"; exit 1; }
        ((steps == 60)) || grep -q "resumed from .* at step $((steps - 60))" "$work/elastic.log" ||
            { cat "$work/elastic.log"; exit 1; }
    done
    echo "$name: resumed with $((count / 2)) ranks and with $count again: $(tail -n 1 "$work/elastic.log")"

    # Killed between two steps, so in the others' next collective: all come back, and quickly.
    begun=$(date +%s%N)
    "$build/bin/ddprun" --standalone --nproc-per-node="$count" --max-restarts=1 "$build/bin/train" --backend nccl \
        --steps 200 --snapshot-every 50 --snapshot-dir "$work/killed" --crash-at-step 120 --crash-rank $((count - 1)) \
        --crash-signal 9 >"$work/killed.log" 2>&1 || { cat "$work/killed.log"; exit 1; }
    grep -q 'resumed from .* at step 100' "$work/killed.log" || { cat "$work/killed.log"; exit 1; }
    echo "$name: rank $((count - 1)) of $count is killed, all resume: $((($(date +%s%N) - begun) / 1000000)) ms in all"

    DDPRUN_GPUS=$count "$build/tests/trainer_nccl_test" --gtest_also_run_disabled_tests --gtest_filter='*Speed*' |
        sed -n "s/^speed: /$name: /p"
fi

# The same of the small GPT, whose snapshots are copied beside its steps, too.
"$build/bin/ddprun" --standalone --nproc-per-node="$count" --max-restarts=1 "$build/bin/gpt" --backend nccl --steps 60 \
    --snapshot-every 10 --snapshot-dir "$work/small" --sample 0 --crash-at-step 45 >"$work/small.log" 2>&1 &&
    grep -q 'resumed from' "$work/small.log" || { cat "$work/small.log"; exit 1; }
echo "$name: gpt, a crash and a resume: $(grep -o 'validation=.* checksum=.*' "$work/small.log" | tail -n 1)"

# The GPT with 124 M parameters in bfloat16, two backward passes a step, and its twin where PyTorch has a GPU.
speed() {
    local what=$1; shift
    "$build/bin/ddprun" --standalone --nproc-per-node="$count" "$@" --size gpt2 --batch 8 --accumulate 2 --steps 20 \
        --log-every 5 --validate-every 1000 --sample 0 --lr 6e-4 >"$work/gpt.log" 2>&1 ||
        { cat "$work/gpt.log"; exit 1; }
    echo "$name: $what, 124 M parameters: $(grep -o 'step=20 .*' "$work/gpt.log")"
}
speed gpt "$build/bin/gpt" --backend nccl
if torch=$(python3 -c 'import torch; assert torch.cuda.is_available(); print(torch.__version__)' 2>/dev/null); then
    speed "gpt.py with PyTorch $torch, eager" examples/python/gpt.py
    speed "gpt.py with PyTorch $torch, compiled" examples/python/gpt.py --compile
else
    echo "$name: no PyTorch for GPUs here, so gpt.py is not measured"
fi

# What needs libtorch's CUDA half: cmake -DDDPRUN_TORCH_CUDA=ON -DDDPRUN_TORCH_ROOT=FOLDER. Twice the same bits are not
# promised: cuDNN adds in any order.
if ldd "$build/bin/mnist" 2>/dev/null | grep -q libtorch_cuda; then
    "$build/bin/ddprun" --standalone --nproc-per-node="$count" --max-restarts=1 "$build/bin/mnist" --backend nccl \
        --steps 100 --snapshot-dir "$work/mnist" --crash-at-step 45 --save "$work/mnist.safetensors" \
        >"$work/mnist.log" 2>&1 || { cat "$work/mnist.log"; exit 1; }
    grep -q 'resumed from' "$work/mnist.log" && [[ -s $work/mnist.safetensors ]] || { cat "$work/mnist.log"; exit 1; }
    echo "$name: mnist with libtorch, a crash and a resume: $(grep -o 'validation=.*' "$work/mnist.log" | tail -n 1)"
    "$build/bin/ddprun" --standalone --nproc-per-node="$count" --max-restarts=1 "$build/bin/gpt_torch" --backend nccl \
        --size gpt2 --batch 8 --accumulate 2 --steps 20 --log-every 5 --sample 0 --lr 6e-4 --snapshot-every 10 \
        --snapshot-dir "$work/gpt_torch" --crash-at-step 15 >"$work/gpt_torch.log" 2>&1 ||
        { cat "$work/gpt_torch.log"; exit 1; }
    echo "$name: gpt_torch, 124 M parameters, a crash and a resume: $(grep -o 'step=20 .*' "$work/gpt_torch.log")"
else
    echo "$name: mnist and gpt_torch on the GPU: not run (this build has no libtorch with CUDA)"
fi

"$build/tests/gpu_step" | sed "s/^/$name: /"

# Errors in memory, races between the threads of a block, memory that is read before it is written, and barriers that
# not all threads reach. Errors that calls return (an attribute that this driver does not know) are no errors of ours,
# but they are in the output.
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) || sanitizer=""
[[ -n $sanitizer ]] || { echo "$name: no compute-sanitizer here; not run"; exit 0; }
mkdir -p "$build/sanitizer"
wrong=0
for program in trainer_mlp_cuda_test trainer_gpt_cuda_test trainer_nccl_graph_test; do
    for tool in memcheck racecheck initcheck synccheck; do
        output=$build/sanitizer/$program.$tool
        options=(--tool "$tool" --error-exitcode 9 --target-processes all --print-limit 10000)
        [[ $tool != memcheck ]] || options+=(--leak-check full --report-api-errors all)
        code=0
        timeout 900 "$sanitizer" "${options[@]}" "$build/tests/$program" >"$output" 2>&1 || code=$?
        # An error of a kernel has an address; one that a call returned has none.
        kernels=$(grep -cE 'Invalid __|Race reported|Uninitialized __|Barrier error|Leaked' "$output" || true)
        calls=$(grep -c 'Program hit .* on .* call' "$output" || true)
        ((code == 0 || (code == 9 && kernels == 0))) || wrong=1
        echo "$name: $program under $tool: exit $code, $kernels errors of kernels, $calls of calls; $output"
        ((kernels == 0)) || sed 's/^/    /' "$output"
    done
done
exit $wrong
