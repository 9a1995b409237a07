#!/usr/bin/env bash
# Builds the programs for AArch64 (arm64) on a machine of another kind, and makes their packages.
#
#   packaging/aarch64.sh [TO]          # default: build-aarch64/packages; prints the paths of the packages
#
# For Debian 12. Compiler and emulator are installed where they are missing. The libraries are Debian's for arm64, about
# 50 MB to download. They are unpacked into build-aarch64/sysroot: dpkg and apt of this machine do not learn of them. The
# emulator (qemu-user) runs the programs for their manual pages and completions.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build-aarch64
to=${1:-$build/packages}
sysroot=$build/sysroot
source "$root/tests/support/packages.sh"

# An apt of its own for arm64: nothing counts as installed, so it finds all that the libraries need.
make_sysroot() {
    local apt=$build/apt options file
    rm -rf "$sysroot" "$apt"
    mkdir -p "$sysroot" "$apt/lists/partial" "$apt/archives/partial"
    : >"$apt/status"
    options=(-qq -o "Dir::State=$apt" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt"
        -o "Dir::Cache::archives=$apt/archives" -o APT::Architecture=arm64 -o APT::Architectures=arm64
        -o Debug::NoLocking=1 -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update
    apt-get "${options[@]}" install --yes --download-only --no-install-recommends "${CROSS_LIBRARIES[@]}"
    for file in "$apt"/archives/*.deb; do dpkg-deb --extract "$file" "$sysroot"; done
    rm -rf "$apt"
    touch "$sysroot/complete"
}

{
    install_packages "${BUILD_PACKAGES[@]}" "${CROSS_PACKAGES[@]}" "${PACKAGING_PACKAGES[@]}"
    [[ -e $sysroot/complete ]] || make_sysroot
    launcher=()
    if command -v ccache >/dev/null; then
        export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
        launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    fi
    cd "$root"
    cmake --preset aarch64 "${launcher[@]}"
    cmake --build --preset aarch64
} >&2
exec "$root/packaging/make.sh" "$build" "$to"
