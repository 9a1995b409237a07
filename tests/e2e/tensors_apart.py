"""The greatest difference between values of two snapshots: FOLDER FOLDER STEP. They must have the same tensors."""
import array, json, pathlib, sys


def tensors(folder, step):
    found = {}
    for path in pathlib.Path(folder).glob(f"snapshot-{int(step):012}-g*.safetensors"):
        raw = path.read_bytes()
        length = int.from_bytes(raw[:8], "little")
        for name, entry in json.loads(raw[8:8 + length]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                found[name] = entry["shape"], array.array("f", raw[8 + length + begin:8 + length + end])
    return found


one, other = (tensors(folder, sys.argv[3]) for folder in sys.argv[1:3])
assert one and {n: s for n, (s, _) in one.items()} == {n: s for n, (s, _) in other.items()}, (one.keys(), other.keys())
print(max(abs(a - b) for name in one for a, b in zip(one[name][1], other[name][1])))
