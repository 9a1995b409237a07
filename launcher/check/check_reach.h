// Tests whether the nodes of a check reach each other. Each node listens on a port of its own and
// calls the port of every other node. A call sends a few bytes, then 64 KiB: a network path that
// drops large packets (wrong MTU) would pass with small ones and fail at the first gradient.
//
// The listener proves with a random word that it is the process that was meant, and not another
// program on that address. Only nodes that share the workers' store know the word. It also sends
// its time of day.
//
// Shell. The listener runs on a thread of its own until the object is destroyed. call() blocks its
// caller; no new call starts after 20 s.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/check/check_facts.h"

namespace ddprun::launcher {

// Owns the listener and its thread. Not thread-safe; one thread makes it, calls it and destroys it.
class Reach {
  public:
    using WallClock = std::function<double()>;  // seconds since any origin that all nodes share

    // Possible errors: unavailable (no free port).
    static Result<std::unique_ptr<Reach>> listen(WallClock clock);
    ~Reach();

    std::uint16_t port() const;
    // The word that callers must send, and that the answer repeats.
    const std::string& word() const;

    // Another node's listener, as it stands in the workers' store.
    struct Peer {
        int rank = 0;
        std::string host;
        std::uint16_t port = 0;
        std::string word;
    };
    struct Outcome {
        std::vector<NodeFacts::Unreached> unreached;  // by rank
        int reached = 0;
        std::optional<NodeFacts::Clock> clock;  // of rank 0, if it was called
    };
    // Calls all peers in this order, at most 64 at a time. May be called once.
    Outcome call(std::vector<Peer> peers);

  private:
    struct State;
    explicit Reach(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// The address of the interface through which this host would reach `host`. Nothing where there is
// no route.
std::optional<std::string> address_towards(const std::string& host);

}  // namespace ddprun::launcher
