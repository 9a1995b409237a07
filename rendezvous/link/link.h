// One TCP connection with the framing of the agent link, for either side: whole frames in, queued
// frames out, and one sentence when it is over. It knows frames, not messages.
//
//   open ──finish()──▶ finishing: what is queued goes out, then end of stream;
//     │                    │      waits for the peer's end, 2 s at most
//     └─ peer ends, error, ─┴──▶ over: on_end(sentence), once. drop(): over at once, without a call
//        garbage, 64 MiB queued
//
// finish_with_us() is finish() without our end of stream. The peer sees that end only when this
// object goes, which means with the process; so the peer can leave at the same time as we do.
//
// hand_over() is for a peer that goes on in another protocol on the same connection. The link reads
// nothing more, sends what is queued, and gives the socket away.
//
// A link that was accepted does not know its peer at first: it has a small limit for frames and a
// time limit, until promote(). seal() and unseal() put identity.h's seals on all frames from then
// on. A frame with a wrong seal is garbage.
//
// Thread: the loop's. Must be made by make_shared; the socket's handlers keep it alive until it is
// over. Handlers are called on the loop, never from within send(), finish() or drop(). They may
// destroy the link's owner.
#pragma once

#include <array>
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
        // The link is over: closed, malformed (garbage) or timed_out, with a sentence.
        std::function<void(const Error&)> on_end;
    };

    // `limit` is the size of the largest frame that is accepted.
    Link(Socket socket, std::size_t limit, Handlers handlers);

    // Starts reading. Unless promote() comes within `promoted_within` (0: no limit), the link ends
    // with timed_out.
    void start(Duration promoted_within);
    // The peer is known now: no time limit any more, another limit for frames, other handlers.
    void promote(std::size_t limit, Handlers handlers);
    // For a link that lasts: its reads wait with a small buffer of their own, which saves a system
    // call for each message. It cannot be handed over any more.
    void read_ahead() { reads_ahead_ = true; }
    // Queues a frame; never blocks.
    void send(std::string_view body);
    void seal(Seal outgoing) { outgoing_.emplace(std::move(outgoing)); }
    void unseal(Seal incoming) { incoming_.emplace(std::move(incoming)); }
    // A frame that the keeper may write, valid after whatever we have sent.
    std::string last_frame(std::string_view body) const;
    void finish();
    void finish_with_us();  // no time limit: the caller drops it in time
    void drop();
    // `taken` gets the socket on the loop, never from within this call. If the link ends before, or
    // what is queued is not taken in 2 s, on_end is called as always.
    void hand_over(std::function<void(Socket)> taken);
    // A key for what follows hand_over(), known to both sides of a sealed link (Seal::key_for). One
    // of them names the other's seal: `ours` is true at exactly one side. Empty: it is not sealed.
    std::string key_for(std::string_view use, bool ours) const;

    bool is_open() const { return phase_ == Phase::open; }
    bool is_over() const { return phase_ == Phase::over; }
    int native_handle() { return socket_.native_handle(); }
    const std::string& peer() const { return peer_; }  // "10.0.0.3:41234"
    const std::string& local_address() const { return local_address_; }

  private:
    enum class Phase { open, finishing, handing_over, over };
    // A Beat, an Ack and most other messages fit. There may be ten thousand idle links.
    static constexpr std::size_t kReadAhead = 256;

    void read();
    void read_ahead_of_need();
    void read_what_is_there();
    void came(boost::system::error_code error, std::string_view bytes);
    void take();
    void write();
    void end(Error why);
    void settle();
    void give_socket();

    Socket socket_;
    boost::asio::steady_timer timer_;     // until promote(); later the limit of finish()
    std::array<char, kReadAhead> ahead_;  // what read_ahead() fills
    bool reads_ahead_ = false;
    FrameReader reader_;
    // Shared with a call that is under way, since promote() may replace them meanwhile. Null when
    // over.
    std::shared_ptr<const Handlers> handlers_;
    Phase phase_ = Phase::open;
    std::string peer_;
    std::string local_address_;
    std::string queue_;     // framed bytes that wait
    std::string out_;       // framed bytes that are being written
    bool greeted_ = false;  // the preface has been queued
    bool framed_ = false;   // a first frame has come
    bool stays_ = false;    // after finish_with_us()
    std::optional<Seal> outgoing_, incoming_;
    std::function<void(Socket)> taken_;  // while handing over
};

}  // namespace ddprun::rendezvous
