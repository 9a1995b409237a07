// Writes the snapshot file's line.
#include "agent/parts/snapshot_hint.h"

#include <chrono>
#include <nlohmann/json.hpp>

namespace ddprun::agent {

std::string to_json(const SnapshotHint& hint, Duration now) {
    const nlohmann::json json{{"format", "ddprun snapshot"},
                              {"version", 1},
                              {"by", hint.asked.by},
                              {"number", hint.asked.number},
                              {"asked_at", std::chrono::duration<double>(now).count()},
                              {"generation", hint.generation.value}};
    // `replace`: a name need not be UTF-8, and dump() would throw.
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ddprun::agent
