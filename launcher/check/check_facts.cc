// The JSON form of one node's findings: written by to_json, read by facts_from_json.
#include "launcher/check/check_facts.h"

#include <nlohmann/json.hpp>

namespace ddprun::launcher {
namespace {

using Json = nlohmann::json;

template <class T>
Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json();
}

template <class T>
std::optional<T> optional_of(const Json& value) {
    return value.is_null() ? std::nullopt : std::optional(value.get<T>());
}

// Two numbers in an array: the difference and its uncertainty.
Json clock_of(const std::optional<NodeFacts::Clock>& clock) {
    return clock ? Json{clock->ahead, clock->within} : Json();
}

Json warm_of(const std::optional<agent::warm::WarmCheck>& warm) {
    if (!warm) return {};
    return {{"cold", warm->cold},
            {"modules", warm->modules},
            {"files", warm->files},
            {"looks", warm->looks}};
}

std::optional<agent::warm::WarmCheck> warm_of(const Json& json) {
    if (json.is_null()) return std::nullopt;
    return agent::warm::WarmCheck{json.at("cold"), json.at("modules"), json.at("files"),
                                  json.at("looks")};
}

}  // namespace

std::string to_json(const NodeFacts& facts) {
    Json unreached = Json::array();
    for (const auto& [rank, why] : facts.unreached) unreached.push_back({rank, why});
    const Json all = {{"name", facts.name},
                      {"slots", facts.slots},
                      {"unreached", std::move(unreached)},
                      {"reached", facts.reached},
                      {"clock", clock_of(facts.clock)},
                      {"ledger_mark", facts.ledger_mark},
                      {"ledger_fault", facts.ledger_fault},
                      {"gpus_given", or_null(facts.gpus_given)},
                      {"gpus_shown", facts.gpus_shown},
                      {"gpu_faults", facts.gpu_faults},
                      {"program_fault", facts.program_fault},
                      {"warm", warm_of(facts.warm)},
                      {"requeue_delay", or_null(facts.requeue_delay)},
                      {"temporary", facts.temporary},
                      {"temporary_free", or_null(facts.temporary_free)},
                      {"shared_memory_free", or_null(facts.shared_memory_free)},
                      {"locked_memory", or_null(facts.locked_memory)},
                      {"rdma", facts.rdma},
                      {"open_files", or_null(facts.open_files)}};
    // `replace`: a path on this node need not be valid UTF-8, and dump() would throw.
    return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Every field is required. Both sides are the same binary of the same job, so there are no
// versions.
Result<NodeFacts> facts_from_json(std::string_view text) {
    try {
        const Json all = Json::parse(text);
        NodeFacts facts;
        facts.name = all.at("name");
        facts.slots = all.at("slots");
        for (const Json& item : all.at("unreached"))
            facts.unreached.push_back({item.at(0).get<int>(), item.at(1).get<std::string>()});
        facts.reached = all.at("reached");
        if (const Json& clock = all.at("clock"); !clock.is_null())
            facts.clock = {clock.at(0).get<double>(), clock.at(1).get<double>()};
        facts.ledger_mark = all.at("ledger_mark");
        facts.ledger_fault = all.at("ledger_fault");
        facts.gpus_given = optional_of<int>(all.at("gpus_given"));
        facts.gpus_shown = all.at("gpus_shown");
        facts.gpu_faults = all.at("gpu_faults").get<std::vector<std::string>>();
        facts.program_fault = all.at("program_fault");
        facts.warm = warm_of(all.at("warm"));
        facts.requeue_delay = optional_of<std::int64_t>(all.at("requeue_delay"));
        facts.temporary = all.at("temporary");
        facts.temporary_free = optional_of<std::int64_t>(all.at("temporary_free"));
        facts.shared_memory_free = optional_of<std::int64_t>(all.at("shared_memory_free"));
        facts.locked_memory = optional_of<std::int64_t>(all.at("locked_memory"));
        facts.rdma = all.at("rdma");
        facts.open_files = optional_of<std::int64_t>(all.at("open_files"));
        return facts;
    } catch (const Json::exception& failure) {
        return Error(ErrorCode::malformed, std::string("facts of a node: ") + failure.what());
    }
}

std::vector<int> peers_of(int rank, int nodes) {
    std::vector<int> peers;
    for (int step = 1; step < nodes; ++step) peers.push_back((rank + step) % nodes);
    return peers;
}

}  // namespace ddprun::launcher
