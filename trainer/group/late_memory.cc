#include "trainer/group/late_memory.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace ddprun::trainer {
namespace {

struct Late {
    const std::byte* end;
    std::shared_ptr<std::atomic<bool>> late;
    std::shared_ptr<const std::string> advice;
};

struct Ranges {
    std::mutex mutex;
    // By their begin. Two owners of the same memory are two entries.
    std::multimap<const std::byte*, Late, std::less<>> all;
};

// Never destroyed: an owner may be a static object of the program, and ends after this.
Ranges& ranges() {
    static Ranges* const only = new Ranges;
    return *only;
}

}  // namespace

LateMemory::LateMemory(const std::vector<Buffer>& buffers, std::string advice) {
    const auto shared = std::make_shared<const std::string>(std::move(advice));
    std::lock_guard lock(ranges().mutex);
    for (const auto& buffer : buffers) {
        const auto* begin = static_cast<const std::byte*>(buffer.data);
        ranges().all.emplace(begin, Late{begin + buffer.bytes(), late_, shared});
    }
}

LateMemory::~LateMemory() {
    std::lock_guard lock(ranges().mutex);
    std::erase_if(ranges().all, [this](const auto& entry) { return entry.second.late == late_; });
}

// Ranges of one owner do not overlap, and owners are few: the ranges that begin in the memory, and
// the last one before it.
Result<void> check_settled(const std::string& name, std::span<const std::byte> memory) {
    std::lock_guard lock(ranges().mutex);
    const auto& all = ranges().all;
    auto at = all.upper_bound(memory.data());
    if (at != all.begin()) at = all.lower_bound(std::prev(at)->first);
    const std::byte* end = memory.data() + memory.size();
    for (; at != all.end() && std::less()(at->first, end); ++at)
        if (*at->second.late && std::less()(memory.data(), at->second.end))
            return usage_error("\"" + name + "\" is still being written; " + *at->second.advice);
    return {};
}

}  // namespace ddprun::trainer
