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

say "slices: Python puts the tensors together that four ranks have shared out, and finds the same values"
run 60 --standalone --nproc-per-node=4 "$train" --steps 20 --snapshot-every 20 --snapshot-dir "$work/z" --zero 1
expect_code 0
"$python" - "$work"/s/*.safetensors "$work"/z/*.index.json >"$work/slices.out" <<'PYTHON' || fail "not put together"
import json, os, sys
import numpy
from safetensors import safe_open
expected = {}
for path in sys.argv[1:-1]:
    with safe_open(path, "numpy") as file:
        expected.update({name: file.get_tensor(name) for name in file.keys()})
index = json.load(open(sys.argv[-1]))
folder = os.path.dirname(sys.argv[-1])
tensors, seen, files = {}, 0, set(index["weight_map"].values())
# Every tensor of the files is in the index, and the index has no others.
for name in files:
    with safe_open(os.path.join(folder, name), "numpy") as file:
        for key in file.keys():
            assert index["weight_map"].pop(key) == name, key
            part = file.get_tensor(key)
            seen += part.nbytes
            piece = index["metadata"]["slices"].get(key)
            if piece is None:
                tensors[key] = part
                continue
            assert json.loads(file.metadata()["slices"])[key] == piece, key
            whole = tensors.setdefault(piece["tensor"], numpy.full(piece["whole"], numpy.nan, part.dtype))
            whole[tuple(slice(o, o + n) for o, n in zip(piece["offset"], part.shape))] = part
assert not index["weight_map"], index
assert seen == index["metadata"]["total_size"], seen
assert tensors.keys() == expected.keys(), tensors.keys()
for name, values in expected.items():
    assert tensors[name].tobytes() == values.tobytes(), name
print(len(tensors), "tensors in", len(files), "files")
PYTHON
expect_in "$work/slices.out" '^8 tensors in 5 files$'
expect_nothing_left
