// The list of errors, the Error that carries one with its sentence, and Result<T>.
//
// Values are for what the world does wrong (a peer, a file, an option); exceptions are for what
// cannot go on. A sentence names who and what, the numbers against the limit, and where to look
// next; it has no full stop and no newline.
#pragma once

#include <boost/system/result.hpp>
#include <ostream>
#include <string>
#include <utility>

namespace ddprun {

enum class ErrorCode {
    internal,     // our own fault: report it; exit 70
    usage,        // the command line or the layout: tell the user what to change; exit 2
    unavailable,  // rendezvous, ledger, port, a peer: cannot meet or go on; exit 69
    timed_out,    // a deadline passed: the caller decides whether to try again
    exists,       // a ledger entry with this number exists: read it
    not_found,    // a file, a key, an entry is not there
    malformed,    // bytes or text that cannot be what they should be: close, skip, name the place
    refused,      // the other side does not want us: other run, other version; do not try again
    closed,       // the connection ended: reconnect
};

// The name of a code as it stands in logs, e.g. "timed_out".
const char* to_string(ErrorCode code);

class Error {
  public:
    Error() = default;
    Error(ErrorCode code, std::string sentence) : code_(code), sentence_(std::move(sentence)) {}

    ErrorCode code() const { return code_; }
    const std::string& sentence() const& { return sentence_; }
    // Result's error() is a temporary: its sentence must outlive it.
    std::string sentence() && { return std::move(sentence_); }
    bool operator==(const Error&) const = default;

    // Asked for by boost::system::result when value() is called on an error: a programmer's
    // mistake.
    friend void throw_exception_from_error(const Error& error, const boost::source_location&);
    friend std::ostream& operator<<(std::ostream& out, const Error& error) {
        return out << to_string(error.code_) << ": " << error.sentence_;
    }

  private:
    ErrorCode code_ = ErrorCode::internal;
    std::string sentence_;
};

template <class T = void>
using Result = boost::system::result<T, Error>;

// Ends the process when a programmer's assumption does not hold, in all builds; never for input.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const char* sentence);
#define DDPRUN_CHECK(condition, sentence) \
    ((condition) ? void() : ::ddprun::check_failed(__FILE__, __LINE__, #condition, sentence))

}  // namespace ddprun
