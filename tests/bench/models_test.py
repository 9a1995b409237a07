#!/usr/bin/env python3
"""What models.py counts as lines of a program: all files of examples/ that it includes, and no comments."""
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.setdefault("DDPRUN", "ddprun")  # nothing is started
import models
from lines_of_code import lines_of_code


class Lines(unittest.TestCase):
    def lines(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_text(text)
            return lines_of_code(path)

    def test_cpp(self):
        self.assertEqual(self.lines("a.cc", "// no\n#include <b>\n\n  // no\nint c;  // yes\n#ifdef D\n#endif\n"), 4)

    def test_python(self):
        text = '"""No\nno."""\nimport a\n\n# no\ndef b():\n    """No."""\n    return """yes\n# yes"""  # yes\n'
        self.assertEqual(self.lines("a.py", text), 4)

    def test_all_files_count(self):
        for model, programs in models.PROGRAMS.items():
            for name in programs:
                files = models.files_of(model, name)
                self.assertEqual(len(files), len(set(files)), f"{model}, {name}: twice")
                for path in files:
                    included = re.findall(r'^#include "examples/(.*)"', path.read_text(), re.M)
                    imported = [f"python/{name}.py" for name in re.findall(r"^from (\w+)", path.read_text(), re.M)]
                    for other in included + imported:
                        if (models.EXAMPLES / other).exists():
                            self.assertIn(models.EXAMPLES / other, files, f"{model}, {name}: {path.name} needs it")


if __name__ == "__main__":
    unittest.main()
