#!/usr/bin/env python3
"""Which units are counted, how, and that a room over its limit is named, as is a limit that guards nothing any more."""
import json
import tempfile
import unittest
from pathlib import Path

from header_lines import limit_for, lines_of_rooms, parse, room_of, verdict


class HeaderLines(unittest.TestCase):
    def test_units_of_rooms_count_and_no_other_file(self):
        for file, room in (("/b/agent/CMakeFiles/ddprun_agent_keeper.dir/Unity/unity_0_cxx.cxx", "agent_keeper"),
                           ("/b/base/CMakeFiles/ddprun_base.dir/Unity/unity_seldom_cxx.cxx", "base"),
                           ("/b/tests/agent/CMakeFiles/ddprun_x.dir/Unity/unity_0_cxx.cxx", None),
                           ("/b/trainer/CMakeFiles/ddprun_trainer_torch.dir/Unity/unity_0_cxx.cxx", None),
                           ("/s/keeper/keeper.cc", None)):
            self.assertEqual(room_of(file), room, file)

    def test_a_header_that_takes_in_more_is_seen(self):
        with tempfile.TemporaryDirectory() as build:
            unit = Path(build) / "CMakeFiles/ddprun_a.dir/Unity/unity_0_cxx.cxx"
            unit.parent.mkdir(parents=True)
            unit.write_text('#include "a.h"\n')
            (Path(build) / "compile_commands.json").write_text(json.dumps(
                [{"directory": build, "file": str(unit), "command": f"g++ -I{build} -o a.o -c {unit}"}]))
            header = Path(build) / "a.h"
            header.write_text("int a();\n")
            before = lines_of_rooms(Path(build))["a"]
            header.write_text("#include <chrono>\nint a();\n")
            self.assertGreater(lines_of_rooms(Path(build))["a"], before + 5000)

    def test_a_limit_is_near_the_count(self):
        self.assertIsNone(verdict("a", 97_000, 100_000))
        self.assertIsNone(verdict("a", 90_000, limit_for(90_000)))
        self.assertIn("100,001 lines after the preprocessor, more than 100,000", verdict("a", 100_001, 100_000))
        self.assertIn("lower 100,000 to 65,000", verdict("a", 60_000, 100_000))
        self.assertIn("is missing", verdict("a", 60_000, None))
        self.assertIn("no such room", verdict("a", None, 100_000))

    def test_the_file_is_a_room_and_a_number_a_line(self):
        self.assertEqual(parse("# head\na 5000\n\nb_c 10000\n"), {"a": 5000, "b_c": 10000})


if __name__ == "__main__":
    unittest.main()
