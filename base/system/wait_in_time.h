// Runs work that may hang, such as a look at a dead network file system, which nothing can
// interrupt, and does not wait for it longer than `limit`. On a loop: base/loop/in_time.h.
//
// Thread: any; it blocks. `work` runs on another thread, and must hold all that it uses: what comes
// too late is left to itself. Where no thread is to be had it is done on this one, however long it
// takes.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>

#include "base/system/start_thread.h"

namespace ddprun {

// What `work` returns; nothing if it did not return in time.
template <class Work>
auto wait_in_time(std::chrono::nanoseconds limit, Work work) -> std::optional<decltype(work())> {
    auto answer = std::make_shared<std::promise<decltype(work())>>();
    auto future = answer->get_future();
    auto thread = start_thread("a look", [answer, work] { answer->set_value(work()); });
    if (!thread) return work();
    thread->detach();
    if (future.wait_for(limit) != std::future_status::ready) return std::nullopt;
    return future.get();
}

}  // namespace ddprun
