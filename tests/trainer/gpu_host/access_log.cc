// Keeps the accesses that may still be in conflict with later ones.
#include "tests/trainer/gpu_host/access_log.h"

#include <algorithm>
#include <functional>

namespace ddprun::trainer::test {
namespace {

const char* begin_of(const Range& range) { return static_cast<const char*>(range.data); }
const char* end_of(const Range& range) { return begin_of(range) + range.bytes; }

bool overlap(const Range& a, const Range& b) {
    return std::less()(begin_of(a), end_of(b)) && std::less()(begin_of(b), end_of(a));
}
bool covers(const Range& a, const Range& b) {
    return !std::less()(begin_of(b), begin_of(a)) && !std::less()(end_of(a), end_of(b));
}

}  // namespace

void VectorClock::set(std::size_t stream, std::uint64_t count) {
    if (counts_.size() <= stream) counts_.resize(stream + 1);
    counts_[stream] = count;
}

void VectorClock::join(const VectorClock& other) {
    for (std::size_t i = 0; i < other.counts_.size(); ++i)
        set(i, std::max(at(i), other.counts_[i]));
}

void AccessLog::allocated(const void* data, std::size_t bytes) {
    memory_.push_back({static_cast<const char*>(data), bytes, ++allocations_});
}

void AccessLog::freed(const void* data) {
    const auto found = std::find_if(memory_.begin(), memory_.end(),
                                    [&](const Memory& memory) { return memory.begin == data; });
    if (found == memory_.end()) return;
    const Range all{found->begin, found->bytes, true};
    std::erase_if(accesses_, [&](const Access& access) { return overlap(access.range, all); });
    memory_.erase(found);
}

void AccessLog::work(const Work& work, const std::vector<Range>& ranges) {
    for (const Range& range : ranges) {
        if (!range.bytes) continue;
        compare(work.name, range, work.before);
        // What comes behind this access comes behind those before it, too.
        if (range.writes)
            std::erase_if(accesses_, [&](const Access& old) {
                return covers(range, old.range) && work.before.at(old.stream) >= old.index;
            });
    }
    for (const Range& range : ranges)
        if (range.bytes) accesses_.push_back({range, work.name, work.stream, work.index});
}

void AccessLog::host(const std::string& name, const Range& range, const VectorClock& waited) {
    compare(name, range, waited);
}

void AccessLog::forget(const VectorClock& waited) {
    std::erase_if(accesses_, [&](const Access& old) { return waited.at(old.stream) >= old.index; });
}

void AccessLog::compare(const std::string& name, const Range& range, const VectorClock& before) {
    for (const Access& old : accesses_) {
        if (!overlap(range, old.range) || !(range.writes || old.range.writes)) continue;
        if (before.at(old.stream) >= old.index) continue;
        reports_.push_back(name + (range.writes ? " writes " : " reads ") + place(range.data) +
                           ", which " + old.name + (old.range.writes ? " writes" : " reads") +
                           "; nothing orders them");
    }
}

std::string AccessLog::place(const void* data) const {
    const auto* at = static_cast<const char*>(data);
    for (const Memory& memory : memory_)
        if (!std::less()(at, memory.begin) && std::less()(at, memory.begin + memory.bytes))
            return "memory " + std::to_string(memory.number) + " from byte " +
                   std::to_string(at - memory.begin);
    return "memory of the host";
}

}  // namespace ddprun::trainer::test
