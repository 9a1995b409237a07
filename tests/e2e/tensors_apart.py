"""The greatest difference between values of two snapshots: FOLDER FOLDER STEP. They must have the same tensors."""
import array, json, math, pathlib, sys


def tensors(folder, step):
    found = {}
    for path in pathlib.Path(folder).glob(f"snapshot-{int(step):012}-g*.safetensors"):
        raw = path.read_bytes()
        length = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8:8 + length])
        slices = json.loads(header.pop("__metadata__", {}).get("slices", "{}"))
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            part = array.array("f", raw[8 + length + begin:8 + length + end])
            # A slice has whole rows of its tensor. What none brings stays NaN, which is near nothing.
            slice = slices.get(name, {"tensor": name, "whole": entry["shape"], "offset": [0] * len(entry["shape"])})
            whole = slice["whole"]
            fresh = (whole, array.array("f", [math.nan]) * math.prod(whole))
            values = found.setdefault(slice["tensor"], fresh)[1]
            first = slice["offset"][0] * math.prod(whole[1:])
            values[first:first + len(part)] = part
    return found


one, other = (tensors(folder, sys.argv[3]) for folder in sys.argv[1:3])
assert one and {n: s for n, (s, _) in one.items()} == {n: s for n, (s, _) in other.items()}, (one.keys(), other.keys())
apart = [abs(a - b) for name in one for a, b in zip(one[name][1], other[name][1])]
print(math.nan if any(map(math.isnan, apart)) else max(apart))
