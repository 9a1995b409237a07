#!/usr/bin/env bash
# A single worker at a terminal (terminal.py): input, Ctrl-C, Ctrl-Z; and nothing is left.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_program python3
DDPRUN_TEST_MARK=$mark python3 "$e2e/terminal.py" "$ddprun"
expect_nothing_left
