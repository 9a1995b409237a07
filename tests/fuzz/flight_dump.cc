// Fuzz target: what a worker's flight recorder tells, with any bytes. What is read from it travels
// to the leader and into a line.
#include "diagnosis/recorder/flight_dump.h"

#include <cstdint>
#include <cstdlib>

#include "rendezvous/hangs/call_mismatch.h"

namespace {

using namespace ddprun;

void require(bool holds) {
    if (!holds) std::abort();
}

bool is_plain(const std::string& text) {
    for (const char c : text)
        if (c < ' ' || c > '~') return false;
    return text.size() <= rendezvous::kCallText;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    // The same calls on one rank, and one half of them on another.
    std::vector<rendezvous::RecordedCalls> all = agent::read_flight_dump(text, 0);
    for (rendezvous::RecordedCalls& record : all) {
        require(record.ranks == std::vector<int>{0} && is_plain(record.group));
        require(record.first >= 1 && record.first <= record.last && record.waits_in >= 0);
        require(!record.calls.empty() && record.calls.size() <= rendezvous::kCallsTold);
        for (const std::string& call : record.calls) require(is_plain(call));
    }
    for (std::size_t i = 0, half = all.size() / 2; i < half; ++i) {
        rendezvous::RecordedCalls other = all[i];
        other.ranks = {1};
        other.last += 1;
        all.push_back(std::move(other));
    }
    const auto together = agent::put_together(std::move(all));
    require(together.size() <= rendezvous::kRecordsTold);
    (void)rendezvous::recorded_sentence(together, 2, [](int) { return std::string("rank"); });
    return 0;
}
