#!/usr/bin/env bash
# The page of ddpctl in a real browser without a window: 1, 8 and 1,000 nodes with recorded states, light and dark, wide
# and as wide as a phone, by keyboard, for screen readers, with texts that are markup, and when what is shown is no
# longer true. page_recorded is ddpctl's own server with states from a test.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_program chromium
need_program python3
[[ -x $bin/../tests/page_recorded ]] || fail "page_recorded is not built"

mkdir "$work/browser"
say "the page in Chromium"
code=0
DDPRUN_TEST_MARK=$mark timeout --kill-after=5 200 python3 "$e2e/page_browser.py" "$bin/../tests/page_recorded" \
    "$work/browser" "${DDPRUN_SCREENSHOTS:-}" >"$work/page.out" 2>"$work/page.err" </dev/null || code=$?
expect_code 0
grep '^first paint' "$work/page.out"
expect_nothing_left 10
