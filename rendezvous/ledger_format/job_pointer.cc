// Job pointer ↔ JSON (job_pointer.h).
#include "rendezvous/ledger_format/job_pointer.h"

#include <nlohmann/json.hpp>

namespace ddprun::rendezvous {
namespace {

constexpr const char* kPointerFormat = "ddprun job 1";

}  // namespace

// Bytes of a run id that are no UTF-8 are replaced: only the daemon compares it.
std::string to_json(const JobPointer& pointer) {
    const nlohmann::ordered_json json{{"format", kPointerFormat},
                                      {"run_id", pointer.run_id},
                                      {"ledger", pointer.ledger},
                                      {"host", pointer.host},
                                      {"port", pointer.port}};
    return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<JobPointer> pointer_from_json(std::string_view text) {
    const auto malformed = [](const char* why) { return Error(ErrorCode::malformed, why); };
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_discarded()) return malformed("is truncated or is not JSON");
    try {
        if (json.at("format") != kPointerFormat) return malformed("has an unknown format");
        const auto port = json.at("port").get<std::int64_t>();
        if (port < 1 || port > UINT16_MAX) return malformed("has a port that is none");
        JobPointer pointer{json.at("run_id").get<std::string>(),
                           json.at("ledger").get<std::string>(), json.at("host").get<std::string>(),
                           static_cast<std::uint16_t>(port)};
        if (pointer.host.empty()) return malformed("names no host");
        return pointer;
    } catch (const nlohmann::json::exception&) {
        return malformed("lacks run_id, ledger, host or port");
    }
}

}  // namespace ddprun::rendezvous
