// What happens when value() is called on a failed Result.
#include "base/failure.h"

namespace ddprun {

// boost::system::result finds this function by argument-dependent lookup and calls it.
void throw_exception_from_error(const Error& error, const boost::source_location&) {
    throw Failure(error);
}

}  // namespace ddprun
