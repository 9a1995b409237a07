// What ddpctl says beside its answer: a line on standard error, so that a pipe gets only the
// answer. Thread: any.
#pragma once

#include <cstdio>
#include <string>

#include "base/printable.h"

namespace ddprun::launcher {

inline void say(const std::string& sentence) {
    std::fprintf(stderr, "ddpctl: %s\n", printable(sentence).c_str());
}

}  // namespace ddprun::launcher
