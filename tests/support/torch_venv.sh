# shellcheck shell=bash
# Sourced by tests/run.sh and tests/bench/run.sh, in the root of the repository.

# The current PyTorch in a virtual environment of the build folder; Debian's interpreter, so that nobody's own counts.
install_current_torch() {
    local venv=build/torch-venv
    [[ -e $venv/complete ]] && "$venv/bin/python" -c 'import safetensors' 2>/dev/null && return 0
    echo "to be installed with pip into $venv: torch (3 GB to download, 5 on disk)"
    [[ -e $venv/complete ]] || { rm -rf "$venv" && /usr/bin/python3 -m venv "$venv"; } || return
    "$venv/bin/pip" install --quiet torch numpy safetensors && touch "$venv/complete"
}
