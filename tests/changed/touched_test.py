#!/usr/bin/env python3
"""Which tests follow from a change, for a small build that is made up here; and that the real table fits the tree."""
import unittest

import touched
from touched import Build, Table, Test, select

BUILD = Build("""room;base;
room;base/system;base
room;rules;base
room;warm;base/system
target;ddprun_base;base;
target;ddprun_base_system;base/system;ddprun_base
target;ddprun_rules;rules;ddprun_base
target;ddprun_warm;warm,agent;ddprun_base_system
target;helpers;tests/trainer;
program;rules_test;tests/rules;ddprun_rules
program;warm_test;tests/warm;ddprun_warm
program;trainer_test;tests/trainer/group;helpers
program;ddprun;launcher;ddprun_rules,ddprun_warm
program;train;examples;
""")
TABLE = Table("""# what scripts test
apart: warm
style: *
pages: *.md docs
e2e_warm_*: warm  # its own room
e2e_train: @train
e2e_*:
""")
TESTS = {
    "rules_test": Test("rules_test"), "warm_test": Test("warm_test"), "trainer_test": Test("trainer_test"),
    "style": Test(None, {"tests/e2e/common.sh"}, {"ddprun"}), "pages": Test(), "odd": Test(),
    "e2e_plain": Test(None, {"tests/e2e/plain.sh", "tests/e2e/common.sh"}, {"ddprun"}),
    "e2e_warm_start": Test(None, {"tests/e2e/warm.sh", "tests/e2e/common.sh"}, {"ddprun"}),
    "e2e_train": Test(None, {"tests/e2e/train.sh", "tests/e2e/common.sh"}, {"ddprun"}),
}
ALWAYS = {"style", "odd"}
E2E = {"e2e_plain", "e2e_warm_start", "e2e_train"}


def runs(*changed):
    return set(select(changed, TESTS, BUILD, TABLE)[0])


class Selection(unittest.TestCase):
    def check(self, changed, *tests):
        self.assertEqual(runs(*changed.split()), set(tests) | ALWAYS)

    def test_a_room_runs_its_test_and_those_of_what_is_built_on_it(self):
        self.check("base/log.h", "rules_test", "warm_test", *E2E)
        self.check("rules/lease.cc", "rules_test", *E2E)
        self.check("base/system/file.cc", "warm_test", *E2E)

    def test_a_room_that_is_apart_runs_only_the_scripts_that_name_it(self):
        self.check("warm/policy.cc", "warm_test", "e2e_warm_start")

    def test_a_file_below_a_room_counts_as_the_rooms(self):
        self.check("warm/bootstrap/site.py", "warm_test", "e2e_warm_start")

    def test_a_script_runs_itself_and_a_shared_one_all_that_name_it(self):
        self.check("tests/e2e/plain.sh", "e2e_plain")
        self.check("tests/e2e/common.sh", *E2E)

    def test_a_test_of_a_room_runs_alone_and_a_shared_header_all_below_it(self):
        self.check("tests/rules/lease_test.cc", "rules_test")
        self.check("tests/trainer/ranks.h", "trainer_test")

    def test_a_program_of_the_table_counts_with_all_that_it_links(self):
        self.check("examples/train.cc", "e2e_train")

    def test_lists_of_sources_count_for_all_below_them(self):
        self.check("tests/e2e/CMakeLists.txt", *E2E)

    def test_pages_run_what_reads_pages(self):
        self.check("README.md rules/README.md", "pages")

    def test_several_changes_add_up(self):
        self.check("README.md tests/rules/lease_test.cc", "pages", "rules_test")

    def test_what_is_not_known_runs(self):
        self.assertEqual(runs("somewhere/else.cc"), set(TESTS))
        self.assertEqual(runs("cmake/rooms.cmake"), set(TESTS))
        self.assertIn("odd", runs("README.md"))

    def test_without_a_change_nothing_runs(self):
        self.assertEqual(runs(), set())

    def test_programs_are_built_for_the_tests_that_run(self):
        def built(*tests):
            return touched.to_build(tests, TESTS, BUILD, TABLE)

        self.assertEqual(built("rules_test", "style", "pages"), {"rules_test"})
        self.assertEqual(built("e2e_plain", "warm_test"), {"warm_test", "ddprun", "train"})
        self.assertEqual(built("odd"), {"ddprun", "train"})

    def test_it_tells_what_is_left_out_and_why(self):
        lines = touched.report(*select(["README.md"], TESTS, BUILD, TABLE))
        self.assertEqual(lines[0], "runs, 2 tests: README.md: style pages")
        self.assertEqual(lines[-1], "left out, 6 tests: no changed file is part of what they test: rules_test warm_test "
                                    "trainer_test e2e_plain e2e_warm_start e2e_train")

    def test_a_line_of_the_table_without_a_colon_is_named(self):
        with self.assertRaisesRegex(ValueError, "no colon: e2e_x warm"):
            Table("e2e_x warm\n")


class Scripts(unittest.TestCase):
    PATHS = {"tests/e2e/warm.sh", "tests/e2e/common.sh", "tests/e2e/warm/kinds.py", "tests/a/twice.py", "tests/b/twice.py",
             "examples/python/gpt.py", "warm/kinds.cc"}

    def test_files_are_found_beside_the_script_and_by_their_only_place(self):
        text = '# never.sh\nsource "$here/common.sh"\n"$python" "$e2e/warm/kinds.py"\n"$examples/gpt.py" a/../b/twice.py kinds.cc'
        self.assertEqual(touched.named_in(text, "tests/e2e/warm.sh", self.PATHS),
                         {"tests/e2e/common.sh", "tests/e2e/warm/kinds.py", "examples/python/gpt.py", "tests/b/twice.py"})
        self.assertEqual(touched.named_in("twice.py", "tests/e2e/warm.sh", self.PATHS), set())

    def test_programs_are_those_that_must_be_built_and_are_called(self):
        text = 'need_built ddprun ../tests/deny_calls\n"$bin/ddpctl" status\nstart x "$train" --steps 1\n'
        self.assertEqual(touched.programs_in(text), {"ddprun", "deny_calls", "ddpctl", "train"})


class RealTable(unittest.TestCase):
    def test_its_folders_exist_and_each_room_that_is_apart_has_a_test(self):
        table = Table(touched.TABLE.read_text())
        named = {each for _, subjects in table.lines for each in subjects}
        for folder in {each for each in named if each[0] not in "*@"} | table.apart:
            self.assertTrue((touched.ROOT / folder).is_dir(), f"tests/changed/subjects.txt: {folder} is no folder")
        self.assertLessEqual(table.apart, named, "no line names these")


if __name__ == "__main__":
    unittest.main()
