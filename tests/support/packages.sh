# shellcheck shell=bash disable=SC2034
# Debian packages: which are needed for what, and how missing ones are installed. Sourced by tests/run.sh and
# examples/quickstart.sh.

# What building ddprun and the examples needs.
BUILD_PACKAGES=(cmake ninja-build g++ pkg-config libboost1.81-dev libprotobuf-dev protobuf-compiler nlohmann-json3-dev
    libgrpc++-dev protobuf-compiler-grpc libc-ares-dev libre2-dev zlib1g-dev libgloo-dev libssl-dev libxxhash-dev
    libtomlplusplus-dev)
# What building for AArch64 needs besides, and the libraries for it (packaging/aarch64.sh).
CROSS_PACKAGES=(g++-aarch64-linux-gnu qemu-user-static)
CROSS_LIBRARIES=(libboost1.81-dev libprotobuf-dev nlohmann-json3-dev libgrpc++-dev libc-ares-dev libre2-dev zlib1g-dev
    libssl-dev libxxhash-dev libtomlplusplus-dev)
# What packaging/make.sh needs that not every Debian has.
PACKAGING_PACKAGES=(binutils python3)
# What the tests need besides: tools that they start (etcd, Slurm, shells, Python with torch), and clang for the
# fuzzers.
TEST_PACKAGES=(libgtest-dev libgmock-dev etcd-server etcd-client procps util-linux mount e2fsprogs binutils iproute2 nftables slurm-wlm munge
    openssl groff-base zsh fish tcsh python3-torch python3-numpy python3-venv python3-matplotlib debootstrap clang
    libclang-rt-14-dev jq strace valgrind mpich libmpich-dev chromium prometheus)
# What tests/bench/run.sh compares with, and what draws its plots.
BENCH_PACKAGES=(redis-server openmpi-bin mpich libmpich-dev slurm-wlm munge python3-venv python3-matplotlib iproute2
    procps util-linux)

# What builds the documentation, and so what its tests need, too.
DOCS_PACKAGES=(mkdocs mkdocs-material)
TEST_PACKAGES+=("${DOCS_PACKAGES[@]}")

# Prints the packages that are not installed, one a line.
missing_packages() {
    local package
    for package in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
    done
}

# Installs what is missing. It says what and how large before it downloads, so that nobody is surprised by gigabytes. It
# fails with a sentence on stderr when it cannot install. When nothing is missing it asks only dpkg, so a second call
# takes no time.
install_packages() {
    local missing sums root=()
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]})) || return 0
    command -v apt-get >/dev/null || { echo "missing: ${missing[*]}; there is no apt-get to install them" >&2; return 1; }
    if ((EUID != 0)); then
        command -v sudo >/dev/null || { echo "missing: ${missing[*]}; run as root or install sudo" >&2; return 1; }
        root=(sudo)
    fi
    # A fresh machine has no package lists yet; --simulate fails then.
    apt-get install --simulate --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
        "${root[@]}" apt-get update --quiet || return 1
    # With --assume-no, apt-get prints its sums and gives up: that is how one asks for the size of a download.
    sums=$(LC_ALL=C apt-get install --assume-no --no-install-recommends "${missing[@]}" 2>/dev/null |
        grep -E '^(Need to get|After this operation)' || true)
    echo "to be installed with apt-get: ${missing[*]}"
    echo "${sums:-size unknown}"
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends \
        "${missing[@]}" >/dev/null || { echo "apt-get could not install: ${missing[*]}" >&2; return 1; }
}
