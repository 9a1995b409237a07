"""The greatest difference between values of two snapshots: FOLDER FOLDER STEP. They must have the same tensors.

Tensors are put together from slices, by the index of the snapshot, as the trainer's README shows."""
import array, json, pathlib, sys


# Of one file: name → shape and values.
def content(path):
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    for name, entry in json.loads(raw[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, (entry["shape"], array.array("f", raw[8 + length + begin:8 + length + end]))


# Rows of a matrix, or a part of a vector: the slices of the examples are in one piece in the whole.
def put(tensors, piece, shape, values):
    assert piece["whole"][1:] == shape[1:] and not any(piece["offset"][1:]), piece
    width = shape[1] if len(shape) > 1 else 1
    _, whole = tensors.setdefault(piece["tensor"], (piece["whole"], array.array("f", [0]) * (piece["whole"][0] * width)))
    first = piece["offset"][0] * width
    whole[first:first + len(values)] = values


def tensors(folder, step):
    index, = pathlib.Path(folder).glob(f"snapshot-{int(step):012}-g*.safetensors.index.json")
    index = json.loads(index.read_text())
    found, slices = {}, index["metadata"]["slices"]
    for file in sorted(set(index["weight_map"].values())):
        for name, (shape, values) in content(pathlib.Path(folder) / file):
            assert index["weight_map"][name] == file, f"{name} is in {file}, too"
            if name in slices:
                put(found, slices[name], shape, values)
            else:
                found[name] = shape, values
    return found


one, other = (tensors(folder, sys.argv[3]) for folder in sys.argv[1:3])
assert one and {n: s for n, (s, _) in one.items()} == {n: s for n, (s, _) in other.items()}, (one.keys(), other.keys())
print(max(abs(a - b) for name in one for a, b in zip(one[name][1], other[name][1])))
