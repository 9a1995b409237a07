#!/usr/bin/env bash
# Builds the documentation and looks at it: no warning of mkdocs; links and anchors lead somewhere; options exist; each
# message that needs action has its entry; pictures and figures are what was recorded. Then a mistake of each kind is
# planted in a copy, and must be found.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl ddprun-rendezvous
[[ -x /usr/bin/mkdocs ]] || skip "mkdocs is not installed"
export DDPRUN_BIN=$bin

say "the site builds, with no network"
alone=()
if ((EUID == 0)) && unshare --net true 2>/dev/null; then alone=(unshare --net); fi
"${alone[@]}" "$root/docs/build.sh" "$work/site" >"$work/build.out" 2>&1 || fail "no site"
(($(wc -l <"$work/build.out") == 1)) || fail "mkdocs has warned"
assemble
page=$work/pages/troubleshooting.md

say "links, anchors, options and blocks are right"
check() { python3 "$docs/page_check.py" "$work/pages" "$work/site" "$bin" >"$work/check.out"; }
check || fail "something is wrong"

say "each message that needs action has an entry"
python3 "$docs/messages.py" "$root" "$page" >"$work/messages.out" || fail "these have none"
(($(python3 "$docs/messages.py" "$root" | wc -l) > 250)) || fail "the sources have hardly any message"

say "the picture is what was recorded"
"$root/docs/restart/draw.py" "$root/docs/restart/run.json" | cmp - "$root/docs/pages/pictures/restart.svg" ||
    fail "draw it anew"

say "no figure is invented: each is in RESULTS.json"
python3 "$docs/measured.py" "$root" >"$work/measured.out" || fail "some are"
mkdir -p "$work/planted/docs/pages" && sed 's/4\.99 ms/4.9 ms/' "$root/README.md" >"$work/planted/README.md"
echo 'It starts in 3.5 ms, after {{start, 9 workers (ms) | ddprun}}.' >"$work/planted/docs/pages/new.md"
! python3 "$docs/measured.py" "$work/planted" >"$work/measured.out" || fail "a planted figure is not found"
expect_in "$work/measured.out" 'README.md: the table "first page" is an old one'
expect_in "$work/measured.out" 'docs/pages/new.md:1: 3.5 ms'
expect_in "$work/measured.out" 'docs/pages/new.md:1: no measure "start, 9 workers \(ms\)" of ddprun'

say "the first page of the repository is short, and has the script of the first page here"
(($(wc -c <"$root/README.md") <= 6500)) || fail "README.md has more than 6.5 kB: move a part to the page it belongs to"
while read -r line; do
    grep -qxF -- "$line" "$root/README.md" || fail "README.md has not: $line"
done < <(sed -n '/title="train.sbatch"/,/^```$/p' "$work/pages/index.md" | sed '1d;$d')

say "a planted mistake of each kind is found"
# What must be said, and the command that plants it.
found() {
    local text=$1; shift
    cp "$work/site/start.html" "$work/start.html" && cp "$work/pages/start.md" "$work/start.md"
    "$@"
    ! check || fail "not found: $text"
    expect_in "$work/check.out" "$text"
    cp "$work/start.html" "$work/site" && cp "$work/start.md" "$work/pages"
}
append() { echo "$2" >>"$1"; }
found 'no file for how-to/none.html' append "$work/site/start.html" '<a href="how-to/none.html">x</a>'
found 'no anchor for how-to/slurm.html#none' append "$work/site/start.html" '<a href="how-to/slurm.html#none">x</a>'
found 'from the network' append "$work/site/start.html" '<script src="https://example.org/x.js"></script>'
# shellcheck disable=SC2016
found '--nprocs is no option' append "$work/pages/start.md" '`ddprun --nprocs=4 train.py`'
found 'a command in a block of text' append "$work/pages/start.md" $'\n```text\nsrun ddprun train.py\n```'
mkdir -p "$work/sources/launcher"
echo 'return usage_error("--sails=" + text + ": no wind; give a number of knots");' >"$work/sources/launcher/sails.cc"
! python3 "$docs/messages.py" "$work/sources" "$page" >"$work/messages.out" || fail "a new message needs no entry"
expect_in "$work/messages.out" 'no wind; give a number of knots'
