// Reads and checks the launcher's variables.
#include "trainer/worker/context.h"

#include <unistd.h>

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

namespace ddprun::trainer {
namespace {

using Variables = std::map<std::string, std::string>;

// An empty variable counts as unset: `RANK= ./train` is a common way to remove a variable.
const std::string* find(const Variables& variables, const char* name) {
    auto it = variables.find(name);
    return it == variables.end() || it->second.empty() ? nullptr : &it->second;
}

// A whole number in a range, or `fallback` if the variable is unset. The message quotes at most 40
// characters of a wrong value.
Result<std::int64_t> number(const Variables& variables, const char* name, std::int64_t fallback,
                            std::int64_t least, std::int64_t most) {
    const std::string* text = find(variables, name);
    if (!text) return fallback;
    std::int64_t value = 0;
    const char* end = text->data() + text->size();
    auto [stop, problem] = std::from_chars(text->data(), end, value);
    if (problem != std::errc{} || stop != end || value < least || value > most) {
        return usage_error(std::string(name) + "=\"" + text->substr(0, 40) +
                           "\" is not a number from " + std::to_string(least) + " to " +
                           std::to_string(most));
    }
    return value;
}

// Far more than any job has. It catches nonsense before somebody allocates memory for so many
// ranks.
constexpr int kMostRanks = 1 << 20;

// Each number limits the next one: rank by world size, local world by world, local rank by local
// world.
Result<void> read_place(const Variables& variables, Context& context) {
    // One of the two without the other is a mistake. Guessing the missing one would let ranks
    // collide.
    const bool has_rank = find(variables, "RANK");
    const bool has_world = find(variables, "WORLD_SIZE");
    if (has_rank != has_world) {
        return usage_error(
            std::string(has_rank ? "RANK is set but WORLD_SIZE is not"
                                 : "WORLD_SIZE is set but RANK is not") +
            "; start the program under ddprun or torchrun, or with neither variable");
    }
    auto world = number(variables, "WORLD_SIZE", 1, 1, kMostRanks);
    if (!world) return world.error();
    auto rank = number(variables, "RANK", 0, 0, *world - 1);
    if (!rank) return rank.error();
    auto local_world = number(variables, "LOCAL_WORLD_SIZE", *world, 1, *world);
    if (!local_world) return local_world.error();
    // Without both local variables all ranks are on one node, and the local rank is the rank.
    const bool knows_local_world = find(variables, "LOCAL_WORLD_SIZE");
    auto local =
        number(variables, "LOCAL_RANK", knows_local_world ? 0 : *rank, 0, *local_world - 1);
    if (!local) return local.error();
    context.world_size = static_cast<int>(*world);
    context.rank = Rank(static_cast<int>(*rank));
    context.local_world_size = static_cast<int>(*local_world);
    context.local_rank = LocalRank(static_cast<int>(*local));
    return {};
}

Result<void> read_store(const Variables& variables, Context& context) {
    const std::string* address = find(variables, "MASTER_ADDR");
    const std::string* port_text = find(variables, "MASTER_PORT");
    // A wrong number is an error also in a world of one.
    auto port = number(variables, "MASTER_PORT", 0, 1, 65535);
    if (!port) return port.error();
    // One process alone has nobody to meet. So an incomplete address is an error only in a larger
    // world.
    if (context.world_size == 1 && !(address && port_text)) return {};
    if (!address || !port_text) {
        return usage_error(std::string(address ? "MASTER_PORT" : "MASTER_ADDR") +
                           " is not set, but WORLD_SIZE is " + std::to_string(context.world_size) +
                           ": the ranks have no store to meet in");
    }
    // torchrun sets "False" with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1. Then rank 0 has to serve the
    // store.
    const std::string* agent_store = find(variables, "TORCHELASTIC_USE_AGENT_STORE");
    if (agent_store && (*agent_store == "False" || *agent_store == "0")) {
        return usage_error("TORCHELASTIC_USE_AGENT_STORE=\"" + *agent_store +
                           "\" asks rank 0 to serve the store itself, which this trainer does not; "
                           "start it under ddprun, or torchrun with its default rendezvous");
    }
    context.master_addr = *address;
    context.master_port = static_cast<std::uint16_t>(*port);
    return {};
}

}  // namespace

Result<Context> Context::from_variables(const Variables& variables) {
    Context context;
    if (auto done = read_place(variables, context); !done) return done.error();
    if (auto done = read_store(variables, context); !done) return done.error();
    auto generation = number(variables, "TORCHELASTIC_RESTART_COUNT", 0, 0,
                             std::numeric_limits<std::int64_t>::max());
    if (!generation) return generation.error();
    context.generation = Generation(*generation);
    if (const std::string* run = find(variables, "TORCHELASTIC_RUN_ID")) context.run_id = *run;
    return context;
}

Result<Context> Context::from_environment() {
    Variables variables;
    // environ may be null, after clearenv().
    for (char** entry = environ; entry && *entry; ++entry) {
        std::string_view text(*entry);
        auto equals = text.find('=');
        if (equals == std::string_view::npos) continue;
        variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    return from_variables(variables);
}

}  // namespace ddprun::trainer
