// Ends the process when DDPRUN_CHECK fails. This is not in error.cc, because it prints, and
// error.cc must stay free of I/O.
#include <cstdio>
#include <cstdlib>

#include "base/error.h"

namespace ddprun {

void check_failed(const char* file, int line, const char* condition, const char* sentence) {
    std::fprintf(stderr, "ddprun: internal error at %s:%d: %s (%s)\n", file, line, sentence,
                 condition);
    // abort() and not exit(): destructors must not run in a state that is known to be wrong, and a
    // core dump shows where it was.
    std::abort();
}

}  // namespace ddprun
