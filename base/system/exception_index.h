// Which part of a program's index for exceptions (.eh_frame_hdr) is about some of its code only.
//
// The index is a table, sorted by the places of the code. The unwinder halves it until it has the
// entry of a place (libgcc's unwind-dw2-fde-dip.c). So a search for other code looks at some
// entries of this code, too, on its way to either side of it: always at the same ones.
//
// Pure. Source: "Exception Frames" in the Linux Standard Base.
#pragma once

#include <cstdint>
#include <vector>

namespace ddprun {

struct PageSpan {
    std::uintptr_t begin, end;
};

// The whole pages of the index at `header` that a search for any other code than that from
// `code_begin` to `code_end` does not look at. Nothing for an index of another form than GNU ld's.
std::vector<PageSpan> index_only_for(const char* header, std::uintptr_t code_begin,
                                     std::uintptr_t code_end, std::uintptr_t page_size);

}  // namespace ddprun
