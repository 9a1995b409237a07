#!/usr/bin/env bash
# The Python package safetensors reads the files of a snapshot that four ranks wrote. It must find the values that the
# file format has at their place.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun train
python=${DDPRUN_TORCH_VENV:-$root/build/torch-venv}/bin/python
"$python" -c 'import safetensors, numpy' 2>/dev/null || skip "$python has no safetensors: tests/run.sh --long installs it"

say "a snapshot"
run 60 --standalone --nproc-per-node=4 "$train" --steps 20 --snapshot-every 20 --snapshot-dir "$work/s"
expect_code 0

say "Python reads it"
"$python" - "$work"/s/*.safetensors >"$work/read.out" <<'PYTHON' || fail "not read"
import json, math, sys
import numpy
from safetensors import safe_open
for path in sys.argv[1:]:
    raw = open(path, "rb").read()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + length])
    with safe_open(path, framework="numpy") as file:
        print("metadata", file.metadata())
        for name in file.keys():
            values = file.get_tensor(name)
            begin, end = header[name]["data_offsets"]
            assert values.tobytes() == raw[8 + length + begin:8 + length + end], name
            assert math.isfinite(float(numpy.abs(values).sum())) and values.any(), name
            print(name, values.dtype, values.size)
PYTHON
expect_in "$work/read.out" "metadata {'format': 'pt'}"
# Names and sizes of the parameters of train, and of their momentum.
for tensor in 'w1 float32 1024' 'b1 float32 64' 'w2 float32 64' 'b2 float32 1' 'momentum.w1 float32 1024' 'momentum.b2 float32 1'; do
    expect_in "$work/read.out" "^$tensor\$"
done
expect_nothing_left
