// The agent's way to its leader: over TCP to another node, or, where this node leads, straight into
// the service of the same process. Which one, stands in each Connect.
//
// Thread: the loop's. Events come on the loop, never from within a call here. Whoever the link is
// to must outlive it.
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
    // LinkUp, LedgerFound, MessageCame and LinkLost.
    using OnEvent = std::function<void(Event)>;

    virtual ~Link() = default;
    virtual void connect(const Connect& request) = 0;
    virtual void send(const rendezvous::ToLeader& message) = 0;
    virtual void close() = 0;
    // As close(), but a leader elsewhere hears nothing of it; ends when that leader leaves. May be
    // none.
    virtual UniqueFd part() = 0;
    virtual int native_handle() const = 0;  // for the keeper's Gone; -1: there is none
    virtual std::string gone_frame(const rendezvous::NodeId& node) const = 0;  // to write there
};

// Says, some time later, whether this node reads the ledger that the Welcome names.
using LedgerLook =
    std::function<void(const rendezvous::Welcome& welcome, std::function<void(bool)> done)>;

// Says, some time later, who else knows the leader: members of the running job.
using MembersLook = std::function<void(std::function<void(std::vector<rendezvous::Peer>)> done)>;

struct LinkConfig {
    std::vector<rendezvous::CallTarget> candidates;  // where the leader may be at the start
    rendezvous::Secrets* secrets = nullptr;          // null: no proof is asked for
    LedgerLook look;  // a Welcome is handed on when it has answered; the Join says what it found
    MembersLook members;  // asked where no candidate has answered for `members_after`
    Duration members_after = std::chrono::seconds{5};
};

// A Connect's address is called before the candidates.
std::unique_ptr<Link> make_link(boost::asio::io_context& loop, LinkConfig config,
                                rendezvous::Service& service, Log log, Link::OnEvent on_event);

}  // namespace ddprun::agent
