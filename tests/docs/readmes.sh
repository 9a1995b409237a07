#!/usr/bin/env bash
# Each command of the READMEs for users is run: here, by the test that readmes.txt names, or it says why nobody runs it.
if ((EUID == 0)) && [[ -z ${DOCS_ISOLATED:-} ]] && unshare --net true 2>/dev/null; then
    export DOCS_ISOLATED=1 # the ports cannot collide with another test's
    exec unshare --net sh -c 'ip link set lo up && exec bash "$@"' sh "$0" "$@"
fi
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/common.sh"
need_built ddprun train tensor_parallel pipeline
table=$root/tests/docs/readmes.txt
mkdir "$work/commands" "$work/run"
# Takes the commands off the pages: a folder with them, the table.
list() { python3 "$root/tests/docs/readmes.py" "$1" "$2" "$work/commands"; }

say "a command that nobody runs is found, and a line of the table without one"
mkdir "$work/other"
(cd "$root" && find README.md trainer examples tests/trainer tests/e2e -name README.md -o -name '*.sh' |
    xargs cp --parents -t "$work/other")
printf '\n    build/bin/linear 7\n\n```bash\nrm -rf here\n```\n' >>"$work/other/trainer/README.md"
sed -i '/size gpt2 --batch 8 --accumulate 8/d' "$work/other/examples/gpt/README.md"
! list "$work/other" "$table" 2>"$work/list.out" >"$work/run.out" || fail "they are not found"
for wanted in 'trainer/README\.md: nobody runs: build/bin/linear 7' 'trainer/README\.md: nobody runs: rm -rf here' \
    'examples/gpt/README\.md: has no: .*--size gpt2'; do
    expect_in "$work/list.out" "$wanted"
done
[[ $(wc -l <"$work/list.out") == 3 ]] || fail "more than these"

list "$root" "$table" >"$work/list.out" 2>"$work/list.err" || fail "see readmes.txt"
export PATH=$bin:/usr/bin:$PATH
ln -s "$root"/* "$work/run"
ln -sfn "${bin%/bin}" "$work/run/build"
while read -r page number; do
    command=$work/commands/$number
    say "$page: $(head -n 1 "$command.sh")"
    # The quickstart builds in the clone: in another build it is not the program under test that it plays.
    if [[ $bin != "$root/build/bin" ]] && grep -q quickstart "$command.sh"; then continue; fi
    DDPRUN_TEST_MARK=$mark timeout 120 env -C "$work/run" bash -euo pipefail "$command.sh" \
        >"$work/run.out" 2>"$work/run.err" </dev/null || fail "it failed"
    while read -r line; do
        grep -qE -- "(^|Z )$line\$" "$work/run.out" "$work/run.err" || fail "not printed: $line"
    done <"$command.prints"
    expect_nothing_left 5
done <"$work/list.out"
