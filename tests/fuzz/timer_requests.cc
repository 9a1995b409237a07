// Fuzz target: lines in the file of torchrun's timers, which every worker may write. A request must
// name a process that a signal may go to, and the table must tell the same timers as a naive one.
//
// The input is a row of lines. After each line the clock goes on by its last byte.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "agent/workers/timer_table.h"

namespace {

using namespace ddprun::agent;

void require(bool holds) {
    if (!holds) std::abort();
}

// The same rules, looked up one by one.
struct NaiveTable {
    std::vector<TimerRequest> timers;

    void take(const TimerRequest& request) {
        std::erase_if(timers, [&](const TimerRequest& timer) {
            return timer.pid == request.pid && timer.scope == request.scope;
        });
        if (!(request.expires < 0)) timers.push_back(request);
    }
    std::vector<TimerRequest> due(double now) {
        std::vector<TimerRequest> over;
        for (const TimerRequest& timer : timers)
            if (timer.expires <= now) over.push_back(timer);
        for (const TimerRequest& gone : over)
            std::erase_if(timers, [&](const TimerRequest& timer) { return timer.pid == gone.pid; });
        return over;
    }
};

auto name_of(const TimerRequest& timer) { return std::pair(timer.pid, timer.scope); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view input(reinterpret_cast<const char*>(data), size);
    TimerTable table;
    NaiveTable naive;
    double now = 0;
    while (!input.empty()) {
        const std::string_view line = input.substr(0, input.find('\n'));
        input.remove_prefix(std::min(line.size() + 1, input.size()));
        if (const auto request = read_timer_request(line)) {
            require(request->pid >= 1 && request->pid <= std::numeric_limits<std::int32_t>::max());
            table.take(*request);
            naive.take(*request);
        } else {
            require(request.error().sentence().size() < 200);
        }
        if (!line.empty()) now += static_cast<unsigned char>(line.back());
        auto due = table.due(now), expected = naive.due(now);
        std::ranges::sort(due, {}, name_of);
        std::ranges::sort(expected, {}, name_of);
        require(std::ranges::equal(due, expected, {}, name_of, name_of));
        const auto next = std::ranges::min_element(naive.timers, {}, &TimerRequest::expires);
        require(table.next().has_value() == (next != naive.timers.end()));
        if (table.next()) require(*table.next() == next->expires && *table.next() > now);
    }
    return 0;
}
