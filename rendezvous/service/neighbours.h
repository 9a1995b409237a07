// The other nodes' services, as a leading one needs them: it calls one to ask how it stands, and
// keeps a silent link to the one that would lead next, for the keeper's last word.
//
// A call is one connection: Inquire, then the answer, which is said as Called, or its end, of which
// nothing is said. The standby link is made again as soon as it breaks, for as long as nobody else is named.
//
// Thread: the loop's. Callbacks come on it, never from within a call here but on_standby's, and
// none after close() or destruction; in them everything may be called, destruction included.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "rendezvous/link/client.h"
#include "rendezvous/model/events.h"

namespace ddprun::rendezvous {

class Secrets;

class Neighbours {
  public:
    using OnCalled = std::function<void(const Called&)>;

    // `self` is who calls. `secrets`, if any, and `loop` outlive it.
    Neighbours(boost::asio::io_context& loop, Log log, Hello self, Secrets* secrets,
               OnCalled on_called);

    void call(const Call& call);

    // Who would lead next, instead of the one before; none: keep no link.
    void stand_by(std::optional<Peer> next);
    // The socket of that link; -1: it is not up. `changed` is called whenever it is another.
    int standby_handle() const;
    std::string standby_gone_frame(const NodeId& node) const;  // to write there
    void on_standby(std::function<void()> changed) { standby_changed_ = std::move(changed); }

    void close();

  private:
    void end_call(std::int64_t number, std::optional<Called> answer);
    void connect_standby();
    void standby_changed() const {
        if (standby_changed_) standby_changed_();
    }

    boost::asio::io_context& loop_;
    const Log log_;
    const Inquire inquire_;
    Secrets* const secrets_;
    const OnCalled on_called_;
    std::map<std::int64_t, std::unique_ptr<Client>> calls_;  // on their way
    std::int64_t newest_call_ = 0;
    std::optional<Peer> next_;
    std::unique_ptr<Client> standby_;
    std::function<void()> standby_changed_;
};

}  // namespace ddprun::rendezvous
