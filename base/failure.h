// Errors as exceptions, for programs that prefer them: or_throw() returns the value of a Result, or
// throws its error as a Failure.
//
//   auto store = or_throw(connect_store(context));
//   or_throw(group->all_reduce(buffer));
//
// value() of a failed Result throws a Failure, too. In the library itself nothing throws one.
#pragma once

#include <stdexcept>
#include <utility>

#include "base/error.h"

namespace ddprun {

// An Error on its way up. what() is the error's sentence.
class Failure : public std::runtime_error {
  public:
    explicit Failure(Error error)
        : std::runtime_error(error.sentence()), error_(std::move(error)) {}

    const Error& error() const { return error_; }
    ErrorCode code() const { return error_.code(); }

  private:
    Error error_;
};

template <class T>
T or_throw(Result<T> result) {
    if (!result) throw Failure(result.error());
    if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace ddprun
