#!/usr/bin/env bash
# Builds the documentation with mkdocs-material, without a network. Installs its two Debian packages if need be.
#
#   docs/build.sh [FOLDER]     into FOLDER (default: build/docs); open FOLDER/index.html, no server is needed
#
# The reference is made from the programs' own option tables, so build/bin (or DDPRUN_BIN) must have them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tests/support/packages.sh

bin=${DDPRUN_BIN:-$PWD/build/bin}
for program in ddprun ddpctl ddprun-rendezvous; do
    [[ -x $bin/$program ]] || { echo "docs/build.sh: $bin/$program is not built; see CONTRIBUTING.md" >&2; exit 1; }
done
install_packages "${DOCS_PACKAGES[@]}"

mkdir -p "${1:-build/docs}"
site=$(cd "${1:-build/docs}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
docs/assemble.py "$bin" "$work/pages"
# The configuration names its folders relative to itself, so it lies beside the assembled pages.
cp docs/mkdocs.yml "$work"
/usr/bin/mkdocs --quiet build --strict --config-file "$work/mkdocs.yml" --site-dir "$site"
echo "the documentation is in $site/index.html; searching needs a server: python3 -m http.server --directory $site"
