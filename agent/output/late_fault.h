// The first fault of a file that was met when nobody could hear of it any more: its console was
// gone and the file thread wrote the rest. The job's end tells it, unless the operator knows that
// kind.
//
// Thread: any.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"

namespace ddprun::agent {

class LateFault {
  public:
    // The operator has heard of a fault of this kind.
    void told(ErrorCode kind) {
        const std::lock_guard held(lock_);
        told_.insert(kind);
    }

    void add(const Error& fault) {
        const std::lock_guard held(lock_);
        if (!first_ && !told_.contains(fault.code())) first_ = fault;
    }

    // At most once.
    std::optional<Error> take() {
        const std::lock_guard held(lock_);
        return std::exchange(first_, std::nullopt);
    }

  private:
    std::mutex lock_;
    std::set<ErrorCode> told_;
    std::optional<Error> first_;
};

}  // namespace ddprun::agent
