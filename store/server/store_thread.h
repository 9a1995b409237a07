// The worker store of one generation on a loop thread of its own. It runs from start() until the
// object is destroyed.
//
// The store's load comes from the workers and must not delay the loop of agent and rendezvous. The
// thread sleeps in epoll while no worker asks. All signals are blocked in it, because they belong
// to the main thread. Callbacks in the options are called on the store's thread; post from there.
// start() takes well under a millisecond. The destructor closes the sockets and all connections.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/system/start_thread.h"
#include "base/system/unique_fd.h"
#include "base/system/wake_pipe.h"
#include "store/server/server.h"

namespace ddprun::store {

class StoreThread {
  public:
    // Possible errors: internal (one of `listening`, which are one at least, is no bound TCP
    // socket), unavailable (no thread can be started).
    static Result<std::unique_ptr<StoreThread>> start(std::vector<UniqueFd> listening,
                                                      ServerOptions options);
    static Result<std::unique_ptr<StoreThread>> start(int listening_fd, ServerOptions options) {
        std::vector<UniqueFd> one;
        one.emplace_back(listening_fd);
        return start(std::move(one), std::move(options));
    }

    ~StoreThread();
    StoreThread(const StoreThread&) = delete;
    StoreThread& operator=(const StoreThread&) = delete;

    // See Server. Callable from any thread.
    std::uint64_t contacts() const { return server_.contacts(); }
    Time last_request() const { return server_.last_request(); }
    void stop_timing() { server_.stop_timing(); }
    std::int64_t operations() const { return server_.operations(); }
    std::int64_t waiters() const { return server_.waiters(); }
    void owners_said(OwnersSaid said);
    void set(std::string key, std::string value);

  private:
    // Wakes the thread for its Asio loop: it accepts connections, and runs what others have posted.
    struct AsioIsDue final : ReadySocket {
        AsioIsDue(bool& due, const WakePipe* pipe) : due(due), pipe(pipe) {}
        void on_ready(bool, bool) override;
        bool& due;
        const WakePipe* const pipe;  // is emptied; null: the descriptor is Asio's
    };

    StoreThread(std::unique_ptr<boost::asio::io_context> io, Server::Acceptors acceptors,
                ServerOptions options, WakePipe wake);
    void wake_at(int fd, const WakePipe* pipe = nullptr);  // throws std::system_error
    void serve();
    Result<> run();

    std::unique_ptr<boost::asio::io_context> io_;  // declared first: server and sessions live on it
    bool asio_is_due_ = true;
    std::deque<AsioIsDue> wakers_;
    WakePipe wake_;  // for other threads
    std::atomic<bool> stopping_{false};
    Server server_;
    Thread thread_;
};

}  // namespace ddprun::store
