// Checks fields that came from outside, and names their place in a sentence: "Join.offer.slots: 0
// is not 1..4096". Used by wire and ledger_json only.
//
// The first fault is kept, and reading goes on with a harmless value. So a decoder is straight code
// without error paths; whoever began it looks at the Fault at the end. A Place lives on the stack
// and costs nothing until a sentence is needed. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace ddprun::rendezvous {

// The first fault of one message, if there is any.
struct Fault {
    std::optional<Error> first;
};

// Where in a message the reading stands: a name, and the Place that contains it.
class Place {
  public:
    Place(Fault& fault, const char* name) : fault_(fault), name_(name) {}

    // The place of a field of this message, or of an element of a repeated field. Must not outlive
    // this Place.
    Place at(const char* field, int index = -1) const { return Place(fault_, field, index, this); }

    // The value if low ≤ value ≤ high; else `low`, and a fault.
    std::int64_t integer(const char* field, std::int64_t value, std::int64_t low,
                         std::int64_t high) const;
    int small(const char* field, std::int64_t value, int low, int high) const {
        return static_cast<int>(integer(field, value, low, high));
    }
    // The text if its size is within the limits; else an empty one, and a fault. Sizes are in
    // bytes.
    std::string text(const char* field, std::string_view value, std::size_t low,
                     std::size_t high) const;
    Duration duration(const char* field, std::int64_t nanoseconds, Duration low,
                      Duration high) const;
    // Whether a repeated field has at most `high` elements. Ask before looking at the elements.
    bool count(const char* field, std::size_t size, std::size_t high) const;

    // Notes a fault, unless there is one already.
    void complain(const char* field, const std::string& sentence) const;

  private:
    Place(Fault& fault, const char* name, int index, const Place* parent)
        : fault_(fault), name_(name), index_(index), parent_(parent) {}
    std::string path() const;

    Fault& fault_;
    const char* name_;
    int index_ = -1;
    const Place* parent_ = nullptr;
};

// Limits that wire and ledger share.
inline constexpr std::size_t kMaxName = 255;   // of a node: the length of a host name
inline constexpr std::size_t kMaxText = 4096;  // bytes of a sentence, a reason, a cause, a line
inline constexpr std::size_t kMaxTail = 1000;  // last lines of a worker
inline constexpr std::size_t kMaxRemarks = 20;
inline constexpr std::size_t kMaxNodes = 100000;
inline constexpr std::size_t kMaxAddresses = 256;
inline constexpr int kMaxSlots = 4096;
// Half of the largest number, so that a sum of two cannot overflow.
inline constexpr int kMaxWorld = std::numeric_limits<int>::max() / 2;
inline constexpr std::int64_t kMaxNumber = std::numeric_limits<std::int64_t>::max() / 2;

}  // namespace ddprun::rendezvous
