#!/usr/bin/env bash
# A single worker at a terminal (terminal.py): input, Ctrl-C, Ctrl-Z. Several (keyboard.py). What workers print at one
# (worker_terminals.py). Lines that several ranks print (collapsed_lines.py). Nothing is left.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_program python3
DDPRUN_TEST_MARK=$mark python3 "$e2e/terminal.py" "$ddprun"
DDPRUN_TEST_MARK=$mark python3 "$e2e/keyboard.py" "$ddprun"
DDPRUN_TEST_MARK=$mark python3 "$e2e/worker_terminals.py" "$ddprun"
DDPRUN_TEST_MARK=$mark python3 "$e2e/collapsed_lines.py" "$ddprun"
expect_nothing_left
