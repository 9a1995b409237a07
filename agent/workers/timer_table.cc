// Parses timer requests and keeps the open timers.
#include "agent/workers/timer_table.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace ddprun::agent {
namespace {

// A program that never releases its timers must not fill our memory. Further timers are ignored.
constexpr std::size_t kMostTimers = 100'000;

}  // namespace

Result<TimerRequest> read_timer_request(std::string_view line) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    // Returns the member if it is a whole number from `least` to `most`. The file is open to every
    // worker, so nothing is taken for granted.
    const auto whole = [&](const char* key, std::int64_t least,
                           std::int64_t most) -> std::optional<std::int64_t> {
        if (!json.is_object() || !json.contains(key) || !json[key].is_number_integer()) return {};
        // A number above the range of its type is a negative one here, and refused.
        const auto value = json[key].get<std::int64_t>();
        return value < least || value > most ? std::nullopt : std::optional(value);
    };
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const auto pid = whole("pid", 1, kMost);
    const auto signal = whole("signal", -kMost, kMost);
    const bool good = pid && signal && json.contains("scope_id") && json["scope_id"].is_string() &&
                      json.contains("expiration_time") && json["expiration_time"].is_number();
    if (!good)
        return Error(ErrorCode::malformed,
                     "not a valid timer request: " + std::string(line.substr(0, 80)));
    return TimerRequest{*pid, json["scope_id"].get<std::string>(),
                        json["expiration_time"].get<double>(), static_cast<int>(*signal)};
}

void TimerTable::take(TimerRequest request) {
    const Key key(request.pid, request.scope);
    const auto old = timers_.find(key);
    if (old != timers_.end()) {
        by_time_.erase({old->second.expires, key});
        timers_.erase(old);
    }
    if (request.expires < 0 || timers_.size() >= kMostTimers) return;
    by_time_.emplace(request.expires, key);
    timers_.emplace(key, std::move(request));
}

// One expired timer ends its process, so the other timers of this process have no meaning any more.
std::vector<TimerRequest> TimerTable::due(double now) {
    std::vector<TimerRequest> over;
    for (const auto& [expires, key] : by_time_) {
        if (expires > now) break;
        over.push_back(timers_.at(key));
    }
    for (const TimerRequest& request : over) forget(request.pid);
    return over;
}

void TimerTable::forget(std::int64_t pid) {
    auto timer = timers_.lower_bound(Key(pid, ""));
    while (timer != timers_.end() && timer->first.first == pid) {
        by_time_.erase({timer->second.expires, timer->first});
        timer = timers_.erase(timer);
    }
}

std::optional<double> TimerTable::next() const {
    if (by_time_.empty()) return std::nullopt;
    return by_time_.begin()->first;
}

}  // namespace ddprun::agent
