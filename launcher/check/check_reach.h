// Whether this node reaches others, and they it: a port of its own that answers, and a call to each
// other node's. A call is small words and then as many bytes as do not fit a packet: a path that
// loses large packets looks well until the first gradient.
//
// Who answers proves by a word, which only those who share the workers' store know, that it is the
// one meant, and says what its clock shows. Shell. Answers on a thread of its own until it is
// destroyed; call() blocks the caller's for 20 s at most.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/check/check_facts.h"

namespace ddprun::launcher {

class Reach {
  public:
    using WallClock = std::function<double()>;  // seconds, any origin that all nodes share

    // Possible errors: unavailable (no port to be had).
    static Result<std::unique_ptr<Reach>> listen(WallClock clock);
    ~Reach();

    std::uint16_t port() const;
    const std::string& word() const;

    struct Peer {
        int rank = 0;
        std::string host;
        std::uint16_t port = 0;
        std::string word;
    };
    struct Outcome {
        std::vector<NodeFacts::Unreached> unreached;  // by rank
        int reached = 0;
        std::optional<NodeFacts::Clock> clock;  // of rank 0
    };
    // Calls all, 64 at a time, in this order. Once.
    Outcome call(std::vector<Peer> peers);

  private:
    struct State;
    explicit Reach(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// The address from which this host would call another; nothing where it cannot.
std::optional<std::string> address_towards(const std::string& host);

}  // namespace ddprun::launcher
