#!/usr/bin/env python3
"""The workflow for forks (.github/workflows/ci.yml): what it calls is there, and what it may is little. Argument: the
root of the repository. Needs python3-yaml, else it ends with 77."""
import os
import pathlib
import re
import sys
import unittest

try:
    import yaml
except ImportError:
    print("skipped: python3-yaml is not installed")
    sys.exit(77)

ROOT = pathlib.Path(sys.argv.pop(1))
# The first versions that run on Node 24. GitHub's machines have no older one.
ACTIONS = {"actions/checkout": 5, "actions/cache/restore": 5, "actions/cache/save": 5, "actions/upload-artifact": 6}


class Workflow(unittest.TestCase):
    text = (ROOT / ".github/workflows/ci.yml").read_text()
    workflow = yaml.safe_load(text)
    jobs = workflow["jobs"]

    def steps(self):
        return [step for job in self.jobs.values() for step in job["steps"]]

    def test_a_fork_runs_it_without_secrets_and_it_may_read_only(self):
        self.assertNotRegex(self.text, r"secrets\s*[.\[]")
        self.assertEqual(self.workflow["permissions"], {"contents": "read"})
        self.assertFalse([name for name, job in self.jobs.items() if "permissions" in job])
        for step in self.steps():
            if step.get("uses", "").startswith("actions/checkout@"):
                self.assertIs(step["with"]["persist-credentials"], False)

    def test_each_job_ends(self):
        for name, job in self.jobs.items():
            self.assertIn("timeout-minutes", job, name)

    def test_each_action_has_a_node_to_run_on(self):
        for action, version in re.findall(r"uses: ([\w/-]+)@v(\d+)", self.text):
            self.assertGreaterEqual(int(version), ACTIONS[action], action)

    def test_each_script_is_there_and_knows_the_option_that_it_is_given(self):
        called = [match for step in self.steps()
                  for match in re.findall(r"^((?:tests|packaging)/[\w/.]+)(?: (--[\w-]+))?", step.get("run", ""))]
        self.assertGreaterEqual(len(called), 4)
        for script, option in called:
            self.assertTrue(os.access(ROOT / script, os.X_OK), script)
            self.assertIn(option, (ROOT / script).read_text())

    def test_what_is_compiled_is_kept_from_run_to_run(self):
        for name, job in self.jobs.items():
            caches = [step for step in job["steps"] if step.get("uses", "").startswith("actions/cache/")]
            if not caches:
                continue
            restore, save = caches
            self.assertEqual(restore["with"]["key"], save["with"]["key"], name)
            self.assertIn("github.sha", save["with"]["key"], "a key is written once only")
            self.assertEqual(restore["with"]["path"], self.workflow["env"]["CCACHE_DIR"])


if __name__ == "__main__":
    unittest.main()
