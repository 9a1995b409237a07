// One TCP connection that speaks the framing of the agent link, either side: whole frames in,
// queued frames out, and one sentence when it is over. It knows frames, not messages.
//
//   open ──finish()──▶ finishing: what is queued goes out, then end of stream;
//     │                    │      waits for the peer's end, 2 s at most
//     └─ peer ends, error, ─┴──▶ over: on_end(sentence), once. drop(): over at once, without a call
//        garbage, 64 MiB queued
//
// finish_with_us() is finish() without our end of stream: the peer hears that when this object goes
// (with the process, that is), and so can leave when we do.
//
// Who accepts a link does not know the peer at first: small frames and a time limit, until
// promote(). seal() and unseal() put identity.h's seals on all frames from then on; one that is
// wrong is garbage.
//
// Thread: the loop's. Made by make_shared; the socket's handlers keep it alive until it is over.
// Handlers are called on the loop, never from within send(), finish() or drop(); they may destroy
// whoever owns the link.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"
#include "rendezvous/identity/identity.h"
#include "rendezvous/wire/frame.h"

namespace ddprun::rendezvous {

class Link : public std::enable_shared_from_this<Link> {
  public:
    using Socket = boost::asio::ip::tcp::socket;
    struct Handlers {
        std::function<void(std::string_view body)> on_frame;
        std::function<void(const Error&)>
            on_end;  // closed, malformed (garbage) or timed_out, with a sentence
    };

    Link(Socket socket, std::size_t limit, Handlers handlers);

    // Begins to read. Without promote() after `promoted_within` (0: no limit) the link ends
    // (timed_out).
    void start(Duration promoted_within);
    void promote(std::size_t limit, Handlers handlers);
    void send(std::string_view body);
    void seal(Seal outgoing) { outgoing_.emplace(std::move(outgoing)); }
    void unseal(Seal incoming) { incoming_.emplace(std::move(incoming)); }
    // A frame that the keeper may write after whatever we have sent.
    std::string last_frame(std::string_view body) const;
    void finish();
    void finish_with_us();  // no limit: the caller drops it in time
    void drop();

    bool is_open() const { return phase_ == Phase::open; }
    bool is_over() const { return phase_ == Phase::over; }
    int native_handle() { return socket_.native_handle(); }
    const std::string& peer() const { return peer_; }  // "10.0.0.3:41234"
    const std::string& local_address() const { return local_address_; }

  private:
    enum class Phase { open, finishing, over };

    void read();
    void readable();
    void take();
    void write();
    void end(Error why);
    void settle();

    Socket socket_;
    boost::asio::steady_timer timer_;  // until promote(), later that of finishing
    FrameReader reader_;
    std::shared_ptr<const Handlers>
        handlers_;  // shared with a call that is under way; null when over
    Phase phase_ = Phase::open;
    std::string peer_;
    std::string local_address_;
    std::string queue_;     // framed bytes that wait
    std::string out_;       // those that are being written
    bool greeted_ = false;  // the preface was queued
    bool framed_ = false;   // a first frame has come
    bool stays_ = false;    // our end comes with this object's
    std::optional<Seal> outgoing_, incoming_;
};

}  // namespace ddprun::rendezvous
