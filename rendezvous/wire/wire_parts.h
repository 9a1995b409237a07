// The nouns inside messages (NodeId, Offer, Ending, …) ↔ protobuf; used by the wire files and
// handshake_messages.cc. What is read is checked, and faults are noted at their Place.
#pragma once

#include <cstddef>
#include <string>

#include "proto/agent_link.pb.h"
#include "rendezvous/model/messages.h"
#include "rendezvous/wire/wire_check.h"

namespace ddprun::rendezvous {

// How many bytes of text one message may still contain. Each text gets at most kMaxText of them.
class TextBudget {
  public:
    explicit TextBudget(std::size_t left) : left_(left) {}
    std::string take(const std::string& text);
    bool empty() const { return left_ == 0; }

  private:
    std::size_t left_;
};

// The first `size` bytes.
std::string clipped(const std::string& text, std::size_t size = kMaxText);

// One pair of write() and read() for each noun.
void write(const NodeId& from, link::NodeId& to);
void write(const Times& from, link::Times& to);
void write(const Limits& from, link::Limits& to);  // without Limits::order
void write(const Peer& from, link::Peer& to);
void write(const Offer& from, link::Offer& to);
void write(const NodePlace& from, link::NodePlace& to);
void write(const WorkerOutcome& from, link::WorkerOutcome& to, TextBudget& budget);
void write(const Ending& from, link::Ending& to);
void write(const Stop& from, link::Stop& to);
void write(const Facts& from, link::Facts& to);

NodeId read(const Place& place, const link::NodeId& from);
Times read(const Place& place, const link::Times& from);
Limits read(const Place& place, const link::Limits& from);
Peer read(const Place& place, const link::Peer& from);
Offer read(const Place& place, const link::Offer& from);
NodePlace read(const Place& place, const link::NodePlace& from);
WorkerOutcome read(const Place& place, const link::WorkerOutcome& from);
Ending read(const Place& place, const link::Ending& from);
Stop read(const Place& place, const link::Stop& from);
Facts read(const Place& place, const link::Facts& from);

// A generation or entry number: -1 (none) or above.
Generation read_generation(const Place& place, const char* field, std::int64_t value);
EntryNumber read_entry(const Place& place, const char* field, std::int64_t value);

// The fields that StopAsked and Stop share. `left` may be negative: the time is over already.
template <class Message>
StopCause read_cause(const Place& place, const Message& from) {
    return static_cast<StopCause>(
        place.small("cause", from.cause(), 0, static_cast<int>(StopCause::larger_world)));
}
template <class Message>
std::optional<Duration> read_left(const Place& place, const Message& from) {
    constexpr Duration kFar = std::chrono::hours{24 * 366};
    if (!from.has_left()) return std::nullopt;
    return place.duration("left", from.left(), -kFar, kFar);
}

}  // namespace ddprun::rendezvous
