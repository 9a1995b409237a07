// What the operator hears about a console that is too slow or cannot be written: the sentences, and
// how often each of them comes. Pure; owned by the console.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "agent/output/output_plan.h"
#include "base/error.h"

namespace ddprun::agent {

// Each function returns what is to be said now; nothing if it has been said before.
class ConsoleReports {
  public:
    // `name` is what the operator knows the console by, for example "stdout".
    ConsoleReports(std::string name, std::size_t limit, Overflow overflow)
        : name_(std::move(name)), limit_(limit), overflow_(overflow) {}

    // A write failed with this errno. `for_good`: there will be no other. Said once, because every
    // later line would fail for the same reason.
    std::optional<Error> broken(int error, bool for_good);
    // The limit is reached. Said once.
    std::optional<Error> slow();
    // Lines were dropped; they are only counted here.
    void count_dropped(std::size_t lines) { dropped_ += lines; }
    // All that were counted since the last call.
    std::optional<Error> dropped();

  private:
    std::string name_;
    std::size_t limit_;
    Overflow overflow_;
    std::size_t dropped_ = 0;
    bool said_broken_ = false, said_slow_ = false;
};

}  // namespace ddprun::agent
