// Runs work that may hang on a thread of its own, and does not wait for it longer than `limit`.
//
// For looks at /proc and at the memory of a process, which may let nobody look for as long as the
// process hangs in the kernel. Work that comes too late is left to itself and ends when the kernel
// lets it. While eight such works have not come back, no further one is begun.
//
// `work` needs a name where it holds more than plain numbers: GCC 12 destroys a closure twice that
// has none and is passed on to co_await.
//
// Thread: the loop's. `work` runs on another thread, and must hold all that it uses.
//
// Without a loop: base/system/wait_in_time.h. An operation of Asio, which can be cancelled:
// ended_by.h.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "base/loop/file_thread.h"

namespace ddprun {

inline constexpr int kWorksAtOnce = 8;
// Works of in_time() that have not come back, in the whole process.
inline std::atomic<int> works_under_way = 0;

// What `work` returns; nothing if it did not return in time, or was not begun.
template <class Work>
auto in_time(Duration limit, Work work) -> boost::asio::awaitable<std::optional<decltype(work())>> {
    if (works_under_way >= kWorksAtOnce) co_return std::nullopt;
    ++works_under_way;
    const boost::asio::any_io_executor executor = co_await boost::asio::this_coro::executor;
    auto& loop = static_cast<boost::asio::io_context&>(executor.context());
    const auto result = std::make_shared<decltype(work())>();
    FileThread thread(loop);
    const bool done =
        co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(bool)>(
            [&](auto handler) {
                // What the thread calls must be copyable, the handler is not.
                const auto told = std::make_shared<decltype(handler)>(std::move(handler));
                thread.post_within(
                    limit,
                    [result, work = std::move(work)] {
                        *result = work();
                        --works_under_way;
                    },
                    [told](bool in_time) { std::move (*told)(in_time); });
            },
            boost::asio::use_awaitable);
    if (done) co_return std::move(*result);
    thread.let_go();
    co_return std::nullopt;
}

}  // namespace ddprun
