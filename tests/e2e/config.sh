#!/usr/bin/env bash
# Configuration files: the user's, and the site's in /etc. This host's /etc stays as it is: the site's file lies in a
# copy of /etc that only a mount namespace sees.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
unset PET_TIMESTAMPS # the only options are those given here
need_built ddprun
need_program jq
cd "$work"

# Runs a command to its end: command… Sets code; output in $work/run.out and run.err.
run_command() {
    code=0
    DDPRUN_TEST_MARK=$mark timeout 30 "$@" >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
}
# Checks where a dry run has an option from: option, value, source, where.
expect_option() {
    local got
    got=$(jq -r ".options.\"$1\" | \"\(.value) \(.from) \(.where)\"" "$work/run.out")
    [[ $got == "$2 $3 $4" ]] || fail "--$1 is $got, not $2 $3 $4"
}

say "--config: the file's options count, and variable and command line win over them"
printf '# of the group\nnproc-per-node = 2\nlease = 20\ncrash-loop = 5\n' >my.toml
run 20 --config=my.toml --standalone bash -c 'echo "rank $RANK of $WORLD_SIZE"'
expect_code 0
expect_in "$work/run.out" 'rank 1 of 2$'
PET_LEASE=21 run 20 --dry-run=json --config=my.toml --standalone --crash-loop 6 true
expect_code 0
expect_option nproc-per-node 2 file my.toml:2
expect_option lease 21 environment PET_LEASE
expect_option crash-loop 6 command_line --crash-loop
expect_option standalone null command_line --standalone
jq -e '.workers.world_size.value == 2 and .times.lease_seconds == 21 and .failure.crash_loop == 6' "$work/run.out" \
    >/dev/null || fail "not 2, 21 and 6"
DDPRUN_CONFIG=my.toml run 20 --dry-run --standalone true
expect_in "$work/run.out" '^  --nproc-per-node +2  \(my.toml:2\)$'
expect_in "$work/run.out" '^  --standalone +\(command line\)$'

say "a mistake: file, line, key and the nearest name"
echo 'nproc-per-nod = 2' >>my.toml
run 20 --config=my.toml --standalone true
expect_code 2
expect_in "$work/run.err" '^ddprun: my.toml:5: nproc-per-nod: no such option; did you mean nproc-per-node\?$'
run 20 --config=none.toml --standalone true
expect_code 2
expect_in "$work/run.err" '^ddprun: --config: none.toml: No such file or directory'
mkfifo pipe
run 20 --config=pipe --standalone true
expect_code 2
expect_in "$work/run.err" 'pipe: it is not a file'
run 20 --config=none.toml --help
expect_code 0

((EUID == 0)) && unshare --mount true 2>/dev/null || { echo "the rest needs root"; exit 0; }
cp -a /etc "$work/etc"
rm -rf "$work/etc/ddprun" && mkdir "$work/etc/ddprun"
site=$work/etc/ddprun/ddprun.toml
# Runs a command where this /etc is the host's: command…
on_site() { run_command unshare --mount bash -c 'mount --bind "$0" /etc && exec "$@"' "$work/etc" "$@"; }

say "the site's file: weaker than the user's"
printf 'identity = "require"\nlease = 30\nnproc-per-node = 3\n' >"$site"
echo 'lease = 25' >my.toml
on_site "$ddprun" --dry-run=json --config=my.toml --standalone true
expect_code 0
expect_option identity require site /etc/ddprun/ddprun.toml:1
expect_option nproc-per-node 3 site /etc/ddprun/ddprun.toml:3
expect_option lease 25 file my.toml:1
# A site that requires a secret.
on_site "$ddprun" --dry-run --nnodes=2 --node-rank=0 --rdzv-endpoint="localhost:$(free_port)" true
expect_in "$work/run.out" 'else the job does not start'

say "called as torchrun, ddprun does not read the site's file, but the user's"
ln -s "$ddprun" torchrun
on_site ./torchrun --dry-run=json --standalone --no-python true
expect_code 0
[[ $(jq -r '.options | keys | join(" ")' "$work/run.out") == "no-python standalone" ]] || fail "the site's file is read"
on_site ./torchrun --dry-run=json --config=my.toml --standalone --no-python true
expect_option lease 25 file my.toml:1

say "a site's file that others than root can write is ignored, with a line"
expect_ignored() { # why
    on_site "$ddprun" --standalone bash -c 'echo "of $WORLD_SIZE"'
    expect_code 0
    expect_in "$work/run.out" 'of 1$'
    expect_in "$work/run.err" "the site's file /etc/ddprun/ddprun.toml is ignored: $1"
}
chmod 664 "$site"
expect_ignored 'others than root can write it; chmod go-w /etc/ddprun/ddprun.toml'
chmod 644 "$site" && chown 1234 "$site"
expect_ignored 'it belongs to user 1234, not to root'
chown 0 "$site"
on_site "$ddprun" --standalone --no-label bash -c 'echo "of $WORLD_SIZE"'
expect_in "$work/run.out" 'of 3$'

say "a mistake in the site's file names it"
echo 'nonsense' >"$site"
on_site "$ddprun" --standalone true
expect_code 2
expect_in "$work/run.err" '^ddprun: /etc/ddprun/ddprun.toml:1: not TOML: '
on_site env DDPRUN_SITE_CONFIG=none "$ddprun" --standalone true
expect_code 0
on_site env DDPRUN_SITE_CONFIG=mine "$ddprun" --standalone true
expect_code 2

say "an option in the site's file that this ddprun does not know is a warning"
printf 'nproc-per-node = 3\noption-of-next-year = 1\n' >"$site"
on_site "$ddprun" --standalone --no-label bash -c 'echo "of $WORLD_SIZE"'
expect_code 0
expect_in "$work/run.out" 'of 3$'
expect_in "$work/run.err" '/etc/ddprun/ddprun.toml:2: option-of-next-year: no such option'
expect_nothing_left
