// ddprun's end of the socket to one keeper process, with the queue of requests that do not fit into
// it yet.
//
// Usable at once: requests may be made before the loop runs. From listen() on, waiting requests go
// out when there is room, and replies arrive as callbacks on the loop. One object for each keeper
// process: a new keeper has a new socket.
//
// Thread: the loop's. Owner: Keeper. It is held by shared_ptr, because Asio's handlers hold it
// until they have run.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/system/unique_fd.h"
#include "base/time.h"
#include "keeper/between/keeper_protocol.h"

namespace ddprun::agent::keeper {

class Socket : public std::enable_shared_from_this<Socket> {
  public:
    // A callback may close the socket, and destroy everything else that it knows.
    using OnReply = std::function<void(const Reply& reply, std::vector<UniqueFd>& fds)>;
    // The keeper has closed its end. This end is closed already.
    using OnEnd = std::function<void()>;

    explicit Socket(UniqueFd socket) : before_(std::move(socket)) {}

    // Starts the delivery on this loop. Call it once.
    void listen(boost::asio::io_context& io, OnReply on_reply, OnEnd on_end);
    // Sends the request, or lets it wait behind those that wait already. A payload that is not
    // empty goes into a memory file, whose descriptor comes first. Descriptors are borrowed: the
    // caller may close its own at once.
    void send(Request request, const std::string& payload = {}, const std::vector<int>& fds = {});
    // Without the loop: sends what waits and throws replies away until the keeper has closed its
    // end. Blocks up to `limit`. `silent`: not even a reply has come.
    enum class End { closed, not_yet, silent };
    End await_end(Duration limit);
    // Waiting requests are dropped, and no callback comes any more.
    void close();
    bool is_open() const { return fd() >= 0; }

  private:
    // A request with its own copies of the descriptors, for as long as it waits.
    struct Packet {
        Request request;
        std::vector<UniqueFd> fds;
    };

    int fd() const { return stream_ ? stream_->native_handle() : before_.get(); }
    void flush();
    void read();
    void take_replies();

    UniqueFd before_;  // before listen(); after it the socket belongs to `stream_`
    std::unique_ptr<boost::asio::posix::stream_descriptor> stream_;
    std::deque<Packet> waiting_;
    bool waits_for_room_ = false;
    OnReply on_reply_;
    OnEnd on_end_;
};

}  // namespace ddprun::agent::keeper
