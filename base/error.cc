// Names of the error codes, and what happens when value() is called on a failed Result.
#include "base/error.h"

#include <stdexcept>

namespace ddprun {

const char* to_string(ErrorCode code) {
    switch (code) {
        case ErrorCode::internal:
            return "internal";
        case ErrorCode::usage:
            return "usage";
        case ErrorCode::unavailable:
            return "unavailable";
        case ErrorCode::timed_out:
            return "timed_out";
        case ErrorCode::exists:
            return "exists";
        case ErrorCode::not_found:
            return "not_found";
        case ErrorCode::malformed:
            return "malformed";
        case ErrorCode::refused:
            return "refused";
        case ErrorCode::closed:
            return "closed";
    }
    return "unknown";
}

void throw_exception_from_error(const Error& error, const boost::source_location&) {
    // boost::system::result finds this function by argument-dependent lookup and calls it. Only a
    // mistake in our own code leads here: the caller asked for a value without a check. The
    // exception carries the sentence, so that a crash shows the original problem.
    throw std::logic_error("value() of a failed result: " + error.sentence());
}

}  // namespace ddprun
