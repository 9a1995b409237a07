// The error codes of the project, the class Error (a code and a sentence), and Result<T>.
//
// Rule: a Result is for what the outside world does wrong (a peer, a file, an option). An exception
// is for what makes it impossible to continue.
//
// Style of a sentence: who and what, the numbers against their limit, and what to do or where to
// look next. It has no full stop and no newline, so that it can become part of a longer log line.
#pragma once

#include <boost/system/result.hpp>
#include <ostream>
#include <string>
#include <utility>

namespace ddprun {

// What a caller can do about an error. Comments name the exit code where a code ends the process.
enum class ErrorCode {
    internal,     // a bug in ddprun: report it; exit code 70
    usage,        // wrong options or layout: tell the user what to change; exit code 2
    unavailable,  // rendezvous, ledger, port or peer cannot be reached; exit code 69
    timed_out,    // a deadline passed: the caller decides whether to try again
    exists,       // a ledger entry or file of this name exists already: read it
    not_found,    // a file, key or entry does not exist
    malformed,    // bytes or text break their format: close or skip, and say where
    refused,      // the other side does not accept us (other run, other version): do not retry
    closed,       // the connection has ended: reconnect
};

// The name of a code as logs show it, for example "timed_out".
const char* to_string(ErrorCode code);

// An error code with a sentence for people. Two errors are equal when both parts are equal.
class Error {
  public:
    Error() = default;
    Error(ErrorCode code, std::string sentence) : code_(code), sentence_(std::move(sentence)) {}

    ErrorCode code() const { return code_; }
    const std::string& sentence() const& { return sentence_; }
    // result::error() returns a temporary object. This overload returns the text by value, because
    // a reference into that temporary would dangle.
    std::string sentence() && { return std::move(sentence_); }
    bool operator==(const Error&) const = default;

    // boost::system::result calls this when value() is called on a failed result. It throws a
    // Failure (failure.h), which holds this error.
    friend void throw_exception_from_error(const Error& error, const boost::source_location&);
    friend std::ostream& operator<<(std::ostream& out, const Error& error) {
        return out << to_string(error.code_) << ": " << error.sentence_;
    }

  private:
    // boost::system::result of Boost 1.81 needs a default constructor of its error type. A
    // forgotten assignment then shows as "internal".
    ErrorCode code_ = ErrorCode::internal;
    std::string sentence_;
};

// Wrong options, variables, layout or arguments: what the user has to change.
inline Error usage_error(std::string sentence) { return {ErrorCode::usage, std::move(sentence)}; }

// Either a T or an Error. Result<> carries no value: it says only whether an operation succeeded. A
// caller who ignores an error on purpose writes (void). (Boost's own class warns of nothing.)
template <class T = void>
class [[nodiscard]] Result : public boost::system::result<T, Error> {
  public:
    using boost::system::result<T, Error>::result;
};

// Prints the failed check with its place, and aborts. Active in all builds. Use it for assumptions
// about our own code only, never for input.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const char* sentence);
// The condition is evaluated exactly once, in all builds, so it may have side effects.
#define DDPRUN_CHECK(condition, sentence) \
    ((condition) ? void() : ::ddprun::check_failed(__FILE__, __LINE__, #condition, sentence))

}  // namespace ddprun
