// Names of the error codes.
#include "base/error.h"

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

}  // namespace ddprun
