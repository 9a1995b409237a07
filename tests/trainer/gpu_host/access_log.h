// Vector clocks, and the accesses of a GPU's work to memory: finds two that touch the same bytes,
// of which one writes, and that nothing orders.
//
// What orders work is known when the program gives it to a stream: the stream's own order, events,
// the rules of the default streams, and what the host has waited for. So a report does not depend
// on when the work is carried out. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::trainer::test {

// For each stream: how many of its first works come before. Missing entries are 0.
class VectorClock {
  public:
    std::uint64_t at(std::size_t stream) const {
        return stream < counts_.size() ? counts_[stream] : 0;
    }
    void set(std::size_t stream, std::uint64_t count);
    void join(const VectorClock& other);
    std::size_t size() const { return counts_.size(); }

  private:
    std::vector<std::uint64_t> counts_;
};

struct Range {
    const void* data = nullptr;
    std::size_t bytes = 0;
    bool writes = false;
};
inline Range reads(const void* data, std::size_t bytes) { return {data, bytes, false}; }
inline Range writes(const void* data, std::size_t bytes) { return {data, bytes, true}; }

class AccessLog {
  public:
    // Memory of its own, which reports name by its number: 1 for the first one.
    void allocated(const void* data, std::size_t bytes);
    void freed(const void* data);

    // Work number `index` of the stream, whose clock says what comes before it.
    struct Work {
        std::string name;  // "kernel backward on stream 2": for the report
        std::size_t stream = 0;
        std::uint64_t index = 0;
        VectorClock before;
    };
    void work(const Work& work, const std::vector<Range>& ranges);

    // The host touches memory now. It has waited for what its clock says.
    void host(const std::string& name, const Range& range, const VectorClock& waited);

    // Nothing that the host has waited for can be in conflict any more.
    void forget(const VectorClock& waited);

    // One line for each pair of accesses that nothing orders.
    const std::vector<std::string>& reports() const { return reports_; }

  private:
    struct Access {
        Range range;
        std::string name;
        std::size_t stream = 0;
        std::uint64_t index = 0;
    };
    struct Memory {
        const char* begin = nullptr;
        std::size_t bytes = 0;
        std::size_t number = 0;
    };
    void compare(const std::string& name, const Range& range, const VectorClock& before);
    std::string place(const void* data) const;

    std::vector<Access> accesses_;
    std::vector<Memory> memory_;
    std::size_t allocations_ = 0;
    std::vector<std::string> reports_;
};

}  // namespace ddprun::trainer::test
