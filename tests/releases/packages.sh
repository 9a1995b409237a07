#!/usr/bin/env bash
# The packages: made twice with the same bytes, then each installed in a bare tree of Debian without a compiler, run and
# removed. In the tree there is Python, for the wheel, and Environment Modules. Argument: the build folder.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/common.sh"
build=$1
need_built ddprun ddpctl ddprun-rendezvous
need_program readelf
need_program dpkg-deb
readelf -l "$bin/ddprun" | grep -c INTERP >/dev/null && skip "the programs of this build are not static"

say "the module ddprun for scripts"
for test in module_test torn_test; do
    PYTHONDONTWRITEBYTECODE=1 timeout 180 python3 "$root/tests/releases/$test.py" "$root/packaging/python" \
        >"$work/$test.out" 2>&1 || fail "its own tests: $test.py"
done

say "packaging/aarch64.sh installs what packaging/make.sh needs, on a bare Debian too"
source "$root/tests/support/packages.sh"
grep -qF '"${PACKAGING_PACKAGES[@]}"' "$root/packaging/aarch64.sh" || fail "packaging/aarch64.sh does not install it"
tools=$(sed -n 's/^for tool in \(.*python3.*\); do$/\1/p' "$root/packaging/make.sh")
[[ -n $tools ]] || fail "packaging/make.sh has no list of tools"
for tool in $tools; do
    owners=$(dpkg-query --search "/bin/$tool" "/usr/bin/$tool" 2>/dev/null | sed 's/:.*//; s/-minimal$//' || true)
    [[ -n $owners ]] || fail "$tool is of no package"
    for owner in $owners; do
        [[ " ${PACKAGING_PACKAGES[*]} " == *" $owner "* ]] ||
            [[ $(dpkg-query -W -f '${Essential}' "$owner") == yes ]] || fail "$tool, of $owner, would not be installed"
    done
done

say "the same programs give the same packages, whoever makes them, and when"
do_it() { "$@" >"$work/make.out" 2>&1 || fail "$*"; }
do_it "$root/packaging/make.sh" "$build" "$work/one"
(
    umask 077
    cd /
    TZ=Asia/Tokyo LC_ALL=C.UTF-8 do_it "$root/packaging/make.sh" "$build" "$work/two"
)
do_it diff -r "$work/one" "$work/two"
archive=$(echo "$work"/one/*.tar.gz) deb=$(echo "$work"/one/*.deb) wheel=$(echo "$work"/one/*.whl)
version=$(basename "$archive" | sed 's/ddprun-\(.*\)-linux.*/\1/')
[[ -s $archive && -s $deb && -s $wheel ]] || fail "there are $(ls "$work/one")"

say "sizes of the programs, and no path of the build"
mkdir "$work/tree"
tar -C "$work/tree" -xzf "$archive"
for program in ddprun ddpctl ddprun-rendezvous; do
    file=$work/tree/ddprun-$version/bin/$program
    limit=$(awk -v name="size_${program//-/_}" '$1 == name {print $2}' "$root/tests/data/limits.txt")
    [[ -n $limit ]] || fail "tests/data/limits.txt has no size of $program"
    size=$(stat -c %s "$file")
    echo "  $program: $size bytes, at most $limit"
    ((size <= limit)) || fail "$program has $size bytes, more than the $limit of tests/data/limits.txt"
    ! grep -qF "$root/" "$file" || fail "$program has a path of the build: $(strings "$file" | grep -m1 -F "$root/")"
done

say "--version names version, commit and build"
for program in ddprun ddpctl ddprun-rendezvous; do
    "$work/tree/ddprun-$version/bin/$program" --version >"$work/version.out"
    commit='([0-9a-f]{12}(-changed)?|unknown)' made='[A-Za-z]+ [A-Za-z]+-[0-9.]+ [a-z0-9_]+'
    expect_in "$work/version.out" "^$program $version, commit $commit, build $made$"
done
do_it cmake --install "$build" --component launcher --prefix "$work/installed"
[[ $(cd "$work/installed" && find . -type f | sort | xargs) == './bin/ddpctl ./bin/ddprun ./bin/ddprun-rendezvous' ]] ||
    fail "cmake installs other programs"
if [[ -e $root/.git ]] && commit=$(git -C "$root" rev-parse HEAD 2>/dev/null); then
    # The programs may be those of an earlier commit; what writes the file is of this one.
    do_it cmake -DROOT="$root" -DTO="$work/this_release.cc" -DVERSION=1 -DBUILD=x -P "$root/cmake/write_release.cmake"
    expect_in "$work/this_release.cc" "\"${commit:0:12}(-changed)?\""
fi
# An archive of git has no repository, but the commit in a file.
mkdir -p "$work/source/cmake" "$work/source/base"
cp "$root/base/this_release.cc.in" "$work/source/base/"
echo '0123456789abcdef0123456789abcdef01234567 1700000000' >"$work/source/cmake/commit.txt"
do_it cmake -DROOT="$work/source" -DTO="$work/other.cc" -DVERSION=1 -DBUILD=x -P "$root/cmake/write_release.cmake"
expect_in "$work/other.cc" '"0123456789ab"'

say "a script asks ddprun by the module: a snapshot, then a stop"
(umask 077; head -c 32 /dev/urandom | base64 >"$work/secret")
export PYTHONPATH=$root/packaging/python PYTHONDONTWRITEBYTECODE=1
start job --nnodes=1 --nproc-per-node=2 --rdzv-id="$mark" --rdzv-endpoint="127.0.0.1:$(free_port)" \
    --shutdown-timeout=100 --ledger="directory:$work/ledger" --secret-file="$work/secret" \
    python3 "$root/tests/releases/trainee.py"
unset PYTHONPATH
both() { (($(grep -c "$1" "$work/job.out") == 2)); }
wait_until 60 both 'rank . trains' || fail "the script does not run"
ask() { timeout 60 "$bin/ddpctl" snapshot --ledger="$work/ledger" --secret-file="$work/secret" >"$work/ctl.out" 2>&1; }
ask || fail "ddpctl does not reach the job"
wait_until 60 has "$work/job.err" 'is reported: step [0-9]+' || fail "no snapshot"
kill -TERM "${pid[job]}"
join job 60
both 'rank . stops, with [0-9]* seconds left' || fail "the script was not told to stop"

need_root
need_program debootstrap
need_program unshare
# The tree stays in the build folder, so only the first run downloads it.
tree=$build/bare-debian
if [[ ! -e $tree/complete ]]; then
    say "a tree of Debian, about 70 MB to download"
    rm -rf "$tree"
    debootstrap --variant=minbase --include=python3-venv,environment-modules bookworm "$tree" >"$work/debootstrap.out" \
        2>&1 || { tail -n 3 "$work/debootstrap.out"; skip "debootstrap cannot make a tree"; }
    touch "$tree/complete"
fi
# Runs a command in the tree: command… Sets code. /proc is mounted in a namespace of its own, so nothing stays mounted.
inside() {
    code=0
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 120 unshare --mount sh -c \
        'mount -t proc proc "$0/proc" && exec chroot "$0" env -u TMPDIR HOME=/root PATH=/usr/bin:/usr/sbin "$@"' \
        "$tree" "$@" </dev/null >"$work/run.out" 2>"$work/run.err" || code=$?
}
works() { inside "$@"; expect_code 0; }
# What is in the tree, but for the books of dpkg and what Python keeps.
content() {
    (cd "$tree" && find . -xdev -not -path './proc/*' -not -path './var/*' -not -name '__pycache__' -not -name '*.pyc' |
        sort)
}
# ddprun trains in the tree, as somebody types it: program.
trains() {
    works "$1" --version
    works "$1" --standalone --nproc-per-node=2 sh -c 'echo "rank $RANK of $WORLD_SIZE"'
    expect_in "$work/run.out" 'rank 1 of 2'
    inside "$1" --standalone --nproc-per-node=2 sh -c 'exit 7'
    expect_code 7
}
rm -rf "$tree/root/packages" "$tree/opt"/* # of a test that was broken off
mkdir "$tree/root/packages"
cp "$archive" "$deb" "$wheel" "$root/tests/releases/trainee.py" "$tree/root/packages/"
for compiler in cc gcc g++ c++ clang; do
    inside sh -c "command -v $compiler"
    ((code != 0)) || fail "the tree has a compiler: $compiler"
done
content >"$work/before"

say "the archive, with its environment module"
works tar -C /opt -xzf "/root/packages/${archive##*/}"
home=/opt/ddprun-$version
trains "$home/bin/ddprun"
works "$home/bin/ddpctl" --version
works "$home/bin/ddprun-rendezvous" --help
for file in share/man/man1/{ddprun,ddpctl,ddprun-rendezvous}.1.gz share/bash-completion/completions/{ddprun,ddpctl} \
    share/zsh/site-functions/{_ddprun,_ddpctl} share/fish/vendor_completions.d/{ddprun,ddpctl}.fish \
    share/ddprun/sbatch/{smallest,elastic,preemptible,array,container}.sbatch share/doc/ddprun/{LICENSE,THIRD_PARTY}; do
    [[ -s $tree$home/$file ]] || fail "$file is missing"
done
works bash -c "source $home/share/bash-completion/completions/ddprun && complete -p ddprun"
works bash -c '. /usr/share/modules/init/bash && module use '"$home"'/share/ddprun/modulefiles && module load ddprun &&
    command -v ddprun ddpctl ddprun-rendezvous && echo "manual: $MANPATH" && module unload ddprun &&
    ! command -v ddprun'
expect_in "$work/run.out" "^$home/bin/ddprun-rendezvous$"
expect_in "$work/run.out" "^manual: $home/share/man:"
works rm -r "$home"
content | do_it diff "$work/before" -

say "the Debian package"
works dpkg --install "/root/packages/${deb##*/}"
trains ddprun
works dpkg --verify ddprun
[[ ! -s $work/run.out ]] || fail "the files are not those of the package"
works dpkg --status ddprun
expect_in "$work/run.out" "^Version: $version$"
works dpkg --purge ddprun
content | do_it diff "$work/before" -

say "an older Debian package is upgraded, also where its files were changed; back again; and nothing is left"
dpkg-deb --raw-extract "$deb" "$work/older"
sed -i 's/^Version: .*/Version: 0.0.1/' "$work/older/DEBIAN/control"
echo gone >"$work/older/usr/share/ddprun/gone"
do_it dpkg-deb -Znone --root-owner-group --build "$work/older" "$tree/root/packages/older.deb"
rm -r "$work/older"
mkdir -p "$tree/etc/ddprun"
echo 'lease = 20' >"$tree/etc/ddprun/ddprun.toml"
works dpkg --install /root/packages/older.deb
echo changed >>"$tree/usr/share/ddprun/sbatch/smallest.sbatch"
works dpkg --install "/root/packages/${deb##*/}"
works dpkg --verify ddprun
[[ ! -s $work/run.out && ! -e $tree/usr/share/ddprun/gone ]] || fail "the older package's files are there"
works dpkg --install /root/packages/older.deb
[[ -e $tree/usr/share/ddprun/gone ]] || fail "it did not go back"
works dpkg --purge ddprun
[[ $(<"$tree/etc/ddprun/ddprun.toml") == 'lease = 20' ]] || fail "the site's own file is gone"
rm -r "$tree/etc/ddprun" "$tree/root/packages/older.deb"
content | do_it diff "$work/before" -

say "the wheel, over an older one"
works python3 -m venv /opt/venv
pip=(/opt/venv/bin/python -m pip --disable-pip-version-check)
works find /opt/venv -iname '*ddprun*'
[[ ! -s $work/run.out ]] || fail "the tree has ddprun already"
mkdir -p "$work/older/bin" "$work/older/share"/{man/man1,doc/ddprun}
for file in bin/{ddprun,ddprun-old} share/man/man1/ddprun-old.1 share/doc/ddprun/THIRD_PARTY; do
    echo '#!/bin/false' >"$work/older/$file"
done
older=$(SOURCE_DATE_EPOCH=0 python3 "$root/packaging/python/wheel.py" 0.0.1 "$(uname -m)" "$work/older" \
    "$tree/root/packages")
works "${pip[@]}" install --no-index "/root/packages/${older##*/}"
rm "$older"
works "${pip[@]}" install --no-index "/root/packages/${wheel##*/}"
works find /opt/venv -iname '*ddprun-old*' -o -iname 'ddprun-0.0.1*'
[[ ! -s $work/run.out ]] || fail "left of the older wheel: $(<"$work/run.out")"
works "${pip[@]}" check
works env PATH=/opt/venv/bin:/usr/bin:/bin sh -c 'command -v ddprun ddpctl ddprun-rendezvous'
trains /opt/venv/bin/ddprun
works /opt/venv/bin/python -c 'import ddprun; ddprun.progress(1); print(ddprun.__version__, ddprun.stop_requested())'
expect_in "$work/run.out" "^$version False$"
works "${pip[@]}" uninstall --yes ddprun
works find /opt/venv -iname '*ddprun*'
[[ ! -s $work/run.out ]] || fail "left: $(cat "$work/run.out")"
works rm -r /opt/venv
content | do_it diff "$work/before" -
rm -r "$tree/root/packages"
expect_nothing_left

auditor=$build/auditwheel-venv
[[ -x $auditor/bin/auditwheel ]] || skip "auditwheel is not installed in $auditor; tests/run.sh installs it"
say "auditwheel finds the wheel as portable as its name says"
"$auditor/bin/auditwheel" show "$wheel" >"$work/audit.out" 2>&1 || fail "auditwheel"
expect_in "$work/audit.out" 'manylinux'
