// An operation of Asio with a deadline. Thread: the loop's.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>
#include <variant>

namespace ddprun {

// What the operation has returned; nothing if the deadline has passed first. Of the two, the one
// that loses is cancelled. `timer` is used for the deadline.
template <class Values>
auto ended_by(boost::asio::steady_timer& timer, boost::asio::steady_timer::time_point deadline,
              boost::asio::awaitable<Values> operation)
    -> boost::asio::awaitable<std::optional<Values>> {
    using namespace boost::asio::experimental::awaitable_operators;
    timer.expires_at(deadline);
    auto first = co_await (std::move(operation) ||
                           timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable)));
    if (first.index() == 1) co_return std::nullopt;
    co_return std::get<0>(std::move(first));
}

}  // namespace ddprun
