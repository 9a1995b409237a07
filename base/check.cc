// The end of a process whose programmer was wrong. Apart from error.cc, for it prints, and a core
// must not.
#include <cstdio>
#include <cstdlib>

#include "base/error.h"

namespace ddprun {

void check_failed(const char* file, int line, const char* condition, const char* sentence) {
    std::fprintf(stderr, "ddprun: internal error at %s:%d: %s (%s)\n", file, line, sentence,
                 condition);
    std::abort();
}

}  // namespace ddprun
