#!/usr/bin/env python3
"""The names in snapshots of several kinds, also of torn ones. Nothing in them is executed."""
import json
import os
import pickle
import struct
import tempfile
import unittest
import zipfile

import modules  # noqa: F401
from ddprun_rehearsal.contents import names_in


class Evil:
    def __reduce__(self):
        return os.mkdir, ("executed",)


class Contents(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        os.chdir(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(os.chdir, "/")

    def write(self, data):
        with open("snapshot", "wb") as file:
            file.write(data)
        return names_in("snapshot")

    def test_pickle_has_its_keys(self):
        self.assertEqual(self.write(pickle.dumps({"model": 1, "optim": {"lr": 2}})), ["model", "optim", "lr"])

    def test_file_of_pytorch_has_the_keys_of_its_pickle(self):
        with zipfile.ZipFile("snapshot", "w") as archive:
            archive.writestr("archive/data.pkl", pickle.dumps({"epoch": 1}))
        self.assertEqual(names_in("snapshot"), ["epoch"])

    def test_safetensors_and_json(self):
        header = json.dumps({"w": {"dtype": "F32"}}).encode()
        self.assertIn("w", self.write(struct.pack("<Q", len(header)) + header))
        self.assertEqual(self.write(b'{"step": 3, "state": {"lr": 1}}'), ["step", "state", "lr"])

    def test_torn_file_has_what_was_written(self):
        data = pickle.dumps({"model": "x" * 100, "last": 1})
        self.assertIn("model", self.write(data[:40]))
        self.assertEqual(self.write(b""), [])

    def test_nothing_is_executed(self):
        self.write(pickle.dumps({"a": Evil()}))
        self.assertFalse(os.path.exists("executed"))


if __name__ == "__main__":
    unittest.main()
