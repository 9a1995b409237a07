// Parses timer requests and keeps the open timers.
#include "agent/workers/timer_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ddprun::agent {
namespace {

// A program that never releases its timers must not fill our memory. Further timers are ignored.
constexpr std::size_t kMostTimers = 100'000;

}  // namespace

Result<TimerRequest> read_timer_request(std::string_view line) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const auto number = [&](const char* key) {
        return json.is_object() && json.contains(key) && json[key].is_number();
    };
    // The file is open to every worker, so each field is checked for its type.
    const bool whole = number("pid") && number("expiration_time") && number("signal") &&
                       json.contains("scope_id") && json["scope_id"].is_string();
    if (!whole)
        return Error(ErrorCode::malformed,
                     "not a valid timer request: " + std::string(line.substr(0, 80)));
    return TimerRequest{json["pid"].get<std::int64_t>(), json["scope_id"].get<std::string>(),
                        json["expiration_time"].get<double>(), json["signal"].get<int>()};
}

void TimerTable::take(TimerRequest request) {
    const std::pair key(request.pid, request.scope);
    if (request.expires < 0)
        timers_.erase(key);
    else if (timers_.size() < kMostTimers || timers_.contains(key))
        timers_[key] = std::move(request);
}

// One expired timer ends its process, so the other timers of this process have no meaning any more.
std::vector<TimerRequest> TimerTable::due(double now) {
    std::vector<TimerRequest> over;
    for (const auto& [key, request] : timers_)
        if (request.expires <= now) over.push_back(request);
    for (const TimerRequest& request : over)
        std::erase_if(timers_, [&](const auto& timer) { return timer.first.first == request.pid; });
    return over;
}

std::optional<double> TimerTable::next() const {
    std::optional<double> next;
    for (const auto& [key, request] : timers_)
        if (!next || request.expires < *next) next = request.expires;
    return next;
}

}  // namespace ddprun::agent
