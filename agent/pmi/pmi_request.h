// The text of PMI-1, with which programs of the MPICH family (MPICH, Intel MPI, MVAPICH) find each
// other: lines of words "key=value", one answer for each request. The longest and the most are
// those that the answer to get_maxes names. Pure.
//
//   cmd=put kvsname=kvs_0_0 key=P0-businesscard value=description#n1$port#4001$
//   cmd=put_result rc=0 msg=success
//
// Source: MPICH's simple_pmi.c, as MPICH 4.0 speaks it. PMI-2 and PMIx are other protocols.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddprun::agent::pmi {

// What the program is told that it may use.
inline constexpr std::size_t kLongestName = 256, kLongestKey = 64, kLongestValue = 1024;
// A line has a name, a key, a value and the words around them.
inline constexpr std::size_t kLongestLine = 4096;

class Request {
  public:
    // A line without its newline. Possible errors: malformed, with what is wrong with it.
    static Result<Request> parse(std::string_view line);

    const std::string& command() const { return command_; }
    // Requests of several lines (spawn) end with the line "endcmd".
    bool has_more_lines() const { return several_; }
    // Empty: there is no such word, or it has no value.
    std::string_view word(const std::string& key) const;
    std::optional<int> number(const std::string& key) const;

  private:
    std::string command_;
    bool several_ = false;
    std::map<std::string, std::string, std::less<>> words_;
};

}  // namespace ddprun::agent::pmi
