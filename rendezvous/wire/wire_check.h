// How a field that came from outside is checked, and how the sentence names its place:
// "Join.offer.slots: 0 is not 1..4096". Used by wire and ledger_json only.
//
// The first fault is kept, and reading goes on with a harmless value, so that decoders are straight
// lines; whoever began looks at the Fault at the end. Places live on the stack and cost nothing
// until a sentence is needed. Pure.
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

struct Fault {
    std::optional<Error> first;
};

class Place {
  public:
    Place(Fault& fault, const char* name) : fault_(fault), name_(name) {}

    // A field, or an element of a repeated one, of this message; must not outlive it.
    Place at(const char* field, int index = -1) const { return Place(fault_, field, index, this); }

    // The value if low ≤ value ≤ high, else low and a fault.
    std::int64_t integer(const char* field, std::int64_t value, std::int64_t low,
                         std::int64_t high) const;
    int small(const char* field, std::int64_t value, int low, int high) const {
        return static_cast<int>(integer(field, value, low, high));
    }
    std::string text(const char* field, std::string_view value, std::size_t low,
                     std::size_t high) const;
    Duration duration(const char* field, std::int64_t nanoseconds, Duration low,
                      Duration high) const;
    // Whether a repeated field has at most `high` elements; looked at before they are.
    bool count(const char* field, std::size_t size, std::size_t high) const;

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

// The limits that wire and ledger share.
inline constexpr std::size_t kMaxName = 255;   // of a node: as long as a host name may be
inline constexpr std::size_t kMaxText = 4096;  // of sentences, reasons, causes, lines
inline constexpr std::size_t kMaxTail = 1000;  // lines of a worker
inline constexpr std::size_t kMaxRemarks = 20;
inline constexpr std::size_t kMaxNodes = 100000;
inline constexpr std::size_t kMaxAddresses = 256;
inline constexpr int kMaxSlots = 4096;
inline constexpr int kMaxWorld = std::numeric_limits<int>::max() / 2;
inline constexpr std::int64_t kMaxNumber = std::numeric_limits<std::int64_t>::max() / 2;

}  // namespace ddprun::rendezvous
