# shellcheck shell=bash disable=SC2034,SC2154
# What the tests of the documentation share: the assembled pages, and a page's blocks. Sourced behind e2e/common.sh.
docs=$root/tests/docs
export PATH=$work/bin:$bin:/usr/bin:$PATH # Debian's Python, for which the packages are

# Puts the pages together, and sets pages: their paths. What cannot exist here gets a stand-in in PATH.
assemble() {
    python3 "$root/docs/assemble.py" "$bin" "$work/pages" >"$work/assemble.out" 2>&1 || fail "no pages"
    mapfile -t pages < <(cd "$work/pages" && find . -name '*.md' | sed 's,^\./,,' | grep -E -- "${PAGES:-.}" | sort)
    ((${#pages[@]})) || fail "no pages"
    mkdir "$work/bin"
    cp "$docs"/stand_ins/[!t]* "$work/bin"
}

# Writes a page's files and blocks into an empty folder: page, kind, folder. $work/blocks lists the blocks.
prepare() {
    mkdir "$3"
    cp "$docs/stand_ins/train.py" "$3"
    python3 "$docs/blocks.py" "$work/pages/$1" "$2" "$3" >"$work/blocks" 2>"$work/blocks.err" ||
        fail "$1 cannot be read"
}

# What the comment before a block says: key, the comment's parts.
values_of() { tr '\t' '\n' <<<"$2" | sed -n "s/^$1=//p"; }
value_of() { values_of "$1" "$2" | head -n 1; }

# Checks that all patterns of a block are in its output: the comment's parts, file.
expect_seen() {
    local pattern
    while read -r pattern; do
        [[ -z $pattern ]] || has "$2" "$pattern" || fail "not seen: $pattern"
    done < <(values_of see "$1")
}
