#!/usr/bin/env bash
# Makes the packages of the programs: an archive, a Debian package and a Python wheel.
#
#   packaging/make.sh [BUILD [TO]]     # default: build, build/packages; prints the paths of the packages
#
# Without BUILD the programs are built first, and what a build needs is installed (Debian 12). The programs of BUILD
# (static: DDPRUN_STATIC=ON) are taken as they are. The same programs give the same bytes: times are that of the commit
# (or SOURCE_DATE_EPOCH), names are sorted, owners are root.
#
# All of them have: the three programs, manual pages, completions for bash, zsh and fish, the templates of batch scripts
# and an environment module. The wheel has programs, manual pages and the module `ddprun`.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${1:-$root/build} to=${2:-${1:-$root/build}/packages}
programs=(ddprun ddpctl ddprun-rendezvous)

fail() { echo "packaging/make.sh: $*" >&2; exit 1; }
if (($# == 0)); then
    # shellcheck source=tests/support/packages.sh
    source "$root/tests/support/packages.sh"
    [[ -e $root/build/build.ninja ]] || {
        install_packages "${BUILD_PACKAGES[@]}" "${PACKAGING_PACKAGES[@]}"
        (cd "$root" && cmake --preset release -DDDPRUN_TESTS=OFF)
    } >&2
    cmake --build "$root/build" --target "${programs[@]}" >&2
fi
for tool in strip readelf dpkg-deb python3 tar gzip; do
    command -v "$tool" >/dev/null || fail "$tool is not installed; on Debian: apt-get install binutils dpkg python3"
done
for program in "${programs[@]}"; do
    [[ -x $build/bin/$program ]] || fail "$build/bin/$program is not built; build first: cmake --build $build"
    ! readelf -l "$build/bin/$program" | grep -q INTERP ||
        fail "$build/bin/$program needs shared libraries; configure with -DDDPRUN_STATIC=ON"
done

# The time of the commit: from git, or from the file that git writes into archives.
time_of_commit() {
    git -C "$root" log -1 --format=%ct 2>/dev/null || grep -oE '[0-9]+$' "$root/cmake/commit.txt" || echo 0
}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(time_of_commit)} LC_ALL=C TZ=UTC
umask 022
processor=$(readelf -h "$build/bin/ddprun" | sed -n 's/.*Machine: *//p')
case $processor in
    *X86-64*) processor=x86_64 debian=amd64 ;;
    *AArch64*) processor=aarch64 debian=arm64 ;;
    *) fail "no package for $processor" ;;
esac
# Where the programs are for another processor, an emulator runs them.
run=() strip=strip
if [[ $processor != "$(uname -m)" ]]; then
    run=("qemu-$processor-static") strip=$processor-linux-gnu-strip
    for tool in "${run[@]}" "$strip"; do
        command -v "$tool" >/dev/null || fail "$tool is not installed; packaging/$processor.sh installs it"
    done
fi
version=$("${run[@]}" "$build/bin/ddprun" --version | sed 's/^ddprun \([^,]*\),.*/\1/')
name=ddprun-$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/$name

# A manual page of ddprun-rendezvous from its help.
rendezvous_page() {
    printf '.TH DDPRUN-RENDEZVOUS 1 "" "ddprun %s" "User Commands"\n.SH NAME\n' "$version"
    printf 'ddprun\\-rendezvous \\- a meeting point for jobs of ddprun\n.SH DESCRIPTION\n.nf\n'
    "${run[@]}" "$build/bin/ddprun-rendezvous" --help | sed 's/\\/\\\\/g; s/-/\\-/g; s/^[.'"'"']/\\\&&/'
    printf '.fi\n'
}

# The licenses of what is linked into the programs, as Debian has them. Boost's asks nothing of programs.
third_party() {
    local package file
    for package in libgrpc-dev libprotobuf-dev libabsl-dev libre2-dev libc-ares-dev zlib1g-dev libssl-dev \
        libxxhash-dev nlohmann-json3-dev libtomlplusplus-dev libc6-dev libstdc++-12-dev; do
        file=/usr/share/doc/$package/copyright
        [[ -s $file ]] || fail "$file is missing: the packages must bring the licenses of what is linked into them"
        printf '==== %s ====\n\n' "$package"
        cat "$file"
        echo
    done
}

# The tree of all files, as it lies below a prefix.
make_tree() {
    local program share=$tree/share
    mkdir -p "$tree/bin" "$share"/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d} \
        "$share"/{doc/ddprun,ddprun/sbatch,ddprun/modulefiles/ddprun}
    for program in "${programs[@]}"; do
        "$strip" -o "$tree/bin/$program" "$build/bin/$program"
        chmod 755 "$tree/bin/$program"
    done
    rendezvous_page >"$share/man/man1/ddprun-rendezvous.1"
    for program in ddprun ddpctl; do
        "${run[@]}" "$build/bin/$program" --print-man >"$share/man/man1/$program.1"
        "${run[@]}" "$build/bin/$program" --print-completion=bash >"$share/bash-completion/completions/$program"
        "${run[@]}" "$build/bin/$program" --print-completion=zsh >"$share/zsh/site-functions/_$program"
        "${run[@]}" "$build/bin/$program" --print-completion=fish >"$share/fish/vendor_completions.d/$program.fish"
    done
    gzip -n6 "$share"/man/man1/*
    cp "$root/README.md" "$root/CHANGELOG.md" "$root/LICENSE" "$share/doc/ddprun/"
    third_party >"$share/doc/ddprun/THIRD_PARTY"
    cp "$root"/slurm/*.sbatch "$share/ddprun/sbatch/"
    sed "s/@VERSION@/$version/" "$root/packaging/modulefile.in" >"$share/ddprun/modulefiles/ddprun/$version"
    find "$share" -type f -exec chmod 644 {} +
}

make_archive() {
    local file=$to/$name-linux-$processor.tar.gz
    tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=ustar \
        -cf - "$name" | gzip -n6 >"$file"
    echo "$file"
}

make_deb() {
    local folder=$work/deb file=$to/ddprun_${version}_$debian.deb size
    mkdir -p "$folder/DEBIAN" "$folder/usr"
    cp -r "$tree"/* "$folder/usr/"
    # Where Debian has these.
    mkdir -p "$folder/usr/share/zsh/vendor-completions"
    mv "$folder"/usr/share/zsh/site-functions/* "$folder/usr/share/zsh/vendor-completions/"
    rmdir "$folder/usr/share/zsh/site-functions"
    mv "$folder/usr/share/doc/ddprun/LICENSE" "$folder/usr/share/doc/ddprun/copyright"
    (cd "$folder" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$folder/DEBIAN/md5sums"
    size=$(find "$folder/usr" -type f -printf '%s\n' | awk '{sum += int(($1 + 1023) / 1024)} END {print sum}')
    sed "s/@VERSION@/$version/; s/@ARCHITECTURE@/$debian/; s/@SIZE@/$size/" "$root/packaging/control.in" \
        >"$folder/DEBIAN/control"
    find "$folder" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz -z1 --threads-max=1 --build "$folder" "$file" >/dev/null
    echo "$file"
}

mkdir -p "$to"
make_tree
make_archive
make_deb
python3 "$root/packaging/python/wheel.py" "$version" "$processor" "$tree" "$to"
