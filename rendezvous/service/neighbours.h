// What a leading service needs from the services of other nodes: it asks one how it stands
// (Inquire), and it keeps a silent link to its successor, the standby, for the keeper's final
// message (rendezvous/PROTOCOL.md, rules 11 and 12).
//
// A call is one connection: Inquire, then the answer, reported as Called. If the connection ends
// without an answer, nothing is reported. The standby is connected again as soon as it breaks,
// until another successor is named.
//
// Thread: the loop's. Callbacks come on the loop and, except for on_standby's, never from within a
// call here. None comes after close() or destruction. They may call everything, and may destroy
// this object.
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

    // `self` is the calling node. `secrets`, if given, and `loop` must outlive this object.
    Neighbours(boost::asio::io_context& loop, Log log, Hello self, Secrets* secrets,
               OnCalled on_called);

    // Asks one service. The answer, if any, comes through on_called.
    void call(const Call& call);

    // The node that leads next; it replaces the one before. Empty: keep no link.
    void stand_by(std::optional<Peer> next);
    // The socket of the standby; -1: it is not up. `changed` is called whenever it changes.
    int standby_handle() const;
    std::string standby_gone_frame(const NodeId& node) const;  // the frame to write there
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
    std::map<std::int64_t, std::unique_ptr<Client>> calls_;  // calls that are under way
    std::int64_t newest_call_ = 0;
    std::optional<Peer> next_;
    std::unique_ptr<Client> standby_;
    std::function<void()> standby_changed_;
};

}  // namespace ddprun::rendezvous
