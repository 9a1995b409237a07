// Serves the page over HTTP: the shell of page_door.h and page_board.h.
//
// One request a connection. At most 64 connections, of which 16 follow the events; who comes after
// that gets 503. A request has 10 s to arrive and 8 KiB, an answer 60 s to leave. A subscriber of
// the events that reads nothing for 30 s is let go; until then it costs one text (512 KiB at most,
// shared with the others) and the kernel's buffer of its socket (256 KiB).
//
// Thread: the loop's. Errors of one connection end that connection.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "base/error.h"
#include "operator/page/page_board.h"
#include "operator/page/page_door.h"

namespace ddprun::launcher {

inline constexpr int kPageConnections = 64, kPageSubscribers = 16;

class PageServer {
  public:
    using tcp = boost::asio::ip::tcp;

    // `loop`, `door` and `board` must outlive this object. Connections live until the loop ends.
    PageServer(boost::asio::io_context& loop, const PageDoor& door, PageBoard& board);
    ~PageServer();
    PageServer(const PageServer&) = delete;
    PageServer& operator=(const PageServer&) = delete;

    // `acceptor` is bound, and listens.
    void start(tcp::acceptor acceptor);
    // The board has something new.
    void wake();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

// Binds and listens. Port 0: a free one. Possible errors: unavailable, with the reason.
Result<boost::asio::ip::tcp::acceptor> listen_for_page(boost::asio::io_context& loop,
                                                       const std::string& address, int port);

}  // namespace ddprun::launcher
