#!/usr/bin/env bash
# What a script does before an import is seen by that import, in each generation: a warm worker cannot be told from a
# cold one. Each case changes something, in all generations or from the second one on, and imports a library that keeps
# what it sees.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$e2e/warm_common.sh"
need_built ddprun
need_program python3
new_python
package mpmath 1.3.0 <"$e2e/warm/probe.py"
export HUB_MODE=plain

# Starts the job of a case: name, when it changes something.
begin_case() {
    local name=$1-$2
    mkdir -p "$work/$name"
    start "$name" --standalone --no-label -v --nproc-per-node=1 --max-restarts=1 --python "$python" \
        "$e2e/warm/differences.py" "$1" "$work/$name" "$2"
}
# Lets it fail as soon as it is known whether a server is ready. Its second look comes after three seconds.
crash_case() {
    wait_until 40 has "$work/$1.err" "$ready|cold, because|no worker can be forked, because" || fail "$1: no word of a server"
    touch "$work/$1/go"
}
seen() { sed -n "s/^generation $2 //p" "$work/$1.out"; } # case, generation

cases=(variable unset path argv filters logging signals umask cwd limits start_method locale zone names stream trace finder
    collector cpus patch patch_class patch_os)

say "what is changed in each generation is seen in each"
for case in nothing "${cases[@]}"; do begin_case "$case" 0; done
for case in nothing "${cases[@]}"; do
    crash_case "$case-0"
    join "$case-0" 60
    expect_code 0
    [[ -n $(seen "$case-0" 0) ]] || fail "$case: generation 0 has seen nothing"
    last=1
    case $case in
        nothing) expect_not_in "$work/nothing-0.err" 'cold, because' ;;
        # Only the worker itself can see it.
        patch*) last=2; expect_in "$work/$case-0.err" 'would differ from its warm start \(.* is another one before' ;;
        *) expect_in "$work/$case-0.err" 'cold, because the script changes .* before it imports mpmath' ;;
    esac
    cmp <(seen "$case-0" 0) <(seen "$case-0" $last) || fail "$case: generation $last has seen something else"
done
expect_nothing_left 10

say "what is changed later is seen, too, and costs no restart"
for case in "${cases[@]}"; do begin_case "$case" 1; done
for case in "${cases[@]}"; do
    crash_case "$case-1"
    join "$case-1" 60
    expect_code 0
    expect_in "$work/$case-1.err" 'a cold start of rank 0 on .* would differ from its warm start \(.*mpmath\)'
    expect_in "$work/$case-1.err" 'cold, because a cold start would differ from a warm one'
    [[ -z $(seen "$case-1" 1) ]] || fail "$case: the warm generation went on"
    # A cold run that changes the same from its beginning.
    cmp <(seen "$case-0" 0 | sed "/^argv/s/'0'/'1'/; s/$case-0/$case-1/g") <(seen "$case-1" 2) ||
        fail "$case: the cold generation has seen something else"
done
expect_nothing_left 10
