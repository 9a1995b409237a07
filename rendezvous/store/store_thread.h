// The store of one generation on a loop thread of its own: it runs from start() until the object
// goes.
//
// The load of the store is the workers', so it must not hold up the loop of agent and rendezvous.
// The thread is an ordinary blocked epoll loop, it does nothing while no worker asks. Its signals
// are blocked: they are the main thread's. Callbacks of the options are called on the store's
// thread; post from there. start() takes well under a millisecond. start() owns the listening
// socket from the call on, whatever comes of it; the destructor closes it and all connections.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <thread>

#include "base/error.h"
#include "rendezvous/store/server.h"

namespace ddprun::store {

class StoreThread {
  public:
    // Errors: internal when listening_fd is no bound TCP socket; unavailable when there can be no
    // thread.
    static Result<std::unique_ptr<StoreThread>> start(int listening_fd, ServerOptions options);

    ~StoreThread();
    StoreThread(const StoreThread&) = delete;
    StoreThread& operator=(const StoreThread&) = delete;

    // See Server::contacts(). Any thread.
    std::uint64_t contacts() const { return server_.contacts(); }

  private:
    StoreThread(std::unique_ptr<boost::asio::io_context> io,
                boost::asio::ip::tcp::acceptor acceptor, ServerOptions options);
    Result<> run();

    std::unique_ptr<boost::asio::io_context> io_;  // first: server and sessions live on it
    Server server_;
    std::thread thread_;
};

}  // namespace ddprun::store
