"""Which names a snapshot has: the keys in a file of PyTorch, safetensors, pickle or JSON. Nothing in it is executed."""
from __future__ import annotations

import json
import pickletools
import struct
import zipfile
from typing import List

MOST = 64 << 20  # bytes of a pickle that are read


def _strings(data: bytes) -> List[str]:
    found = {}
    try:
        for _, argument, _ in pickletools.genops(data):
            if isinstance(argument, str):
                found[argument] = None
    except Exception:  # a torn file: what was found until there counts
        pass
    return list(found)


def _keys(value: object) -> List[str]:
    if isinstance(value, dict):
        return [name for key, inner in value.items() for name in [str(key)] + _keys(inner)]
    if isinstance(value, list):
        return [name for inner in value[:100] for name in _keys(inner)]
    return []


def names_in(path: str) -> List[str]:
    """Empty: another kind of file, or it cannot be read."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                pickles = [each for each in archive.namelist() if each.endswith("data.pkl")]
                return _strings(archive.read(pickles[0])) if pickles else archive.namelist()
        with open(path, "rb") as file:
            begin = file.read(8)
            if begin[:1] == b"\x80":
                return _strings(begin + file.read(MOST))
            if begin[:1] in (b"{", b"["):
                return _keys(json.loads(begin + file.read(MOST)))
            length, = struct.unpack("<Q", begin)
            return _keys(json.loads(file.read(length))) if length < MOST else []
    except (OSError, ValueError, struct.error, zipfile.BadZipFile):
        return []
