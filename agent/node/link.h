// The agent's connection to its leader: over TCP to another node, or, if this node leads, directly
// to the service in this process. Each Connect says which one.
//
// Thread: the loop's. Events come from the loop, never from within a call. The service must outlive
// the link.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "agent/machine/events.h"
#include "base/system/unique_fd.h"
#include "rendezvous/link/client.h"
#include "rendezvous/service/service.h"

namespace ddprun::agent {

class Link {
  public:
    // Receives LinkUp, LedgerFound, MessageCame and LinkLost.
    using OnEvent = std::function<void(Event)>;

    virtual ~Link() = default;
    // Replaces an existing connection. Answered by LinkUp or LinkLost.
    virtual void connect(const Connect& request) = 0;
    // Messages go out in order. A message without a connection is dropped.
    virtual void send(const rendezvous::ToLeader& message) = 0;
    virtual void close() = 0;
    // Like close(), but a leader on another node does not notice it. Returns a descriptor that
    // reports the end of the connection when this leader leaves; -1 if there is none.
    virtual UniqueFd part() = 0;
    // The descriptor on which the keeper writes Gone; -1 if there is none.
    virtual int native_handle() const = 0;
    // The bytes of this Gone message.
    virtual std::string gone_frame(const rendezvous::NodeId& node) const = 0;
};

// Finds out whether this node reads the ledger that the Welcome names. `done` is called later.
using LedgerLook =
    std::function<void(const rendezvous::Welcome& welcome, std::function<void(bool)> done)>;

// Finds members of the running job in its ledger, because they know the leader. `done` is called
// later.
using MembersLook = std::function<void(std::function<void(std::vector<rendezvous::Peer>)> done)>;

// Where to call at the start, and what to ask.
struct LinkConfig {
    std::vector<rendezvous::CallTarget> candidates;  // where the leader may be at the start
    rendezvous::Secrets* secrets = nullptr;          // null: no proof of identity
    // Asked for each Welcome, which is passed on after the answer. The Join carries the result.
    LedgerLook look;
    // Asked when no candidate has answered for `members_after`.
    MembersLook members;
    Duration members_after = std::chrono::seconds{5};
};

// The address in a Connect is called before the candidates.
std::unique_ptr<Link> make_link(boost::asio::io_context& loop, LinkConfig config,
                                rendezvous::Service& service, Log log, Link::OnEvent on_event);

}  // namespace ddprun::agent
