// For worker programs that prefer exceptions: or_throw() returns the value of a Result or throws a
// Failure, which keeps the error's code and sentence (base/failure.h).
//
//   int main() try {
//       const auto context = or_throw(Context::from_environment());
//       …
//   } catch (const Failure& failure) {
//       std::fprintf(stderr, "%s\n", failure.what());
//       return report_error(failure.error());
//   }
#pragma once

#include "base/failure.h"

namespace ddprun::trainer {

using ddprun::Failure;
using ddprun::or_throw;

}  // namespace ddprun::trainer
