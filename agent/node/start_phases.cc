// Subtracts times.
#include "agent/node/start_phases.h"

#include <algorithm>
#include <utility>

namespace ddprun::agent {

void StartPhases::begin(int processes, Time now) {
    processes_ = processes;
    begun_ = now;
    started_.reset();
    met_.reset();
}

void StartPhases::started(Time now) {
    if (begun_ && !met_) started_ = now;
}

bool StartPhases::met(int processes, Time now) {
    if (met_ || processes < processes_) return false;
    met_ = now;
    return true;
}

// A phase that nobody has seen counts to the next one.
std::string StartPhases::progressed(Time now, std::optional<Time> last_request) {
    if (!begun_) return "";
    Time last = *std::exchange(begun_, std::nullopt);
    const Time first = last;
    std::string text;
    const auto add = [&](const char* name, Time until) {
        until = std::clamp(until, last, now);
        text += (text.empty() ? "" : ", ") + std::string(name) + " " + to_text(until - last);
        last = until;
    };
    if (started_) add("program", *started_);
    if (met_) add("imports", *met_);
    if (met_ && last_request) add("process group", *last_request);
    add("first step", now);
    return "the first progress came after " + to_text(now - first) + ": " + text;
}

}  // namespace ddprun::agent
