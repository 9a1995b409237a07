// The sentences of passed limits.
#include "store/protocol/limits.h"

namespace ddprun::store {

Error over_limit(const std::string& what, std::uint64_t limit, const char* option) {
    return Error(ErrorCode::malformed, what + ", over the limit of " + std::to_string(limit) +
                                           "; " + option + " raises it");
}

Error no_room(const std::string& who, const Memory& memory) {
    return over_limit(who + " while the store holds " + std::to_string(memory.used) + " bytes",
                      memory.limit, "--store-max-memory");
}

}  // namespace ddprun::store
