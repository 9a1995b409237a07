// Whether this node has a leader, since when it has none, and which service it calls then
// (rendezvous/PROTOCOL.md, rule 10; succession.h has the order of the calls).
//
// Pure; owned by the agent machine.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "rendezvous/rules/succession.h"

namespace ddprun::agent {

class LeaderLink {
  public:
    LeaderLink(const rendezvous::NodeId& self, Time now) : caller_(self), lost_since_(now) {}

    // ---- the link
    bool is_welcomed() const { return welcomed_; }
    bool was_welcomed() const { return was_welcomed_; }  // ever
    Time lost_since() const { return lost_since_; }
    // The leader has welcomed this node, which ends the search.
    void welcomed(const rendezvous::Welcome& welcome) {
        welcomed_ = was_welcomed_ = true;
        call_.reset();
        call_at_ = kNever;
        caller_.led_by(welcome.at);
        caller_.learn(welcome.order);
    }
    void lost(Time now) { lost_since_ = now; }
    void disconnected() { welcomed_ = false; }
    // The rendezvous refused this node, so it calls nobody any more.
    void refused() {
        refused_ = true;
        welcomed_ = false;
    }
    bool is_refused() const { return refused_; }

    // ---- what the leader tells
    void learn(std::vector<rendezvous::Peer> order) { caller_.learn(std::move(order)); }
    const std::optional<rendezvous::Peer>& leader() const { return caller_.leader(); }
    bool has_order() const { return !caller_.order().empty(); }

    // ---- the search
    using Call = rendezvous::Caller::Call;
    const std::optional<Call>& call() const { return call_; }  // none: nobody is searched for
    void search(Time now, Duration lease, bool may_lead) {
        call_ = caller_.begin(now, lease, may_lead);
    }
    void next(Time now) { call_ = caller_.next(now); }
    void elsewhere(Time now, const rendezvous::Elsewhere& answer) {
        call_ = caller_.elsewhere(now, answer);
    }
    // The next call waits until then.
    void wait_until(Time when) { call_at_ = when; }
    bool waits() const { return call_at_ != kNever; }
    Time calls_at() const { return call_at_; }

  private:
    rendezvous::Caller caller_;
    bool welcomed_ = false, was_welcomed_ = false, refused_ = false;
    Time lost_since_;
    std::optional<Call> call_;
    Time call_at_ = kNever;
};

}  // namespace ddprun::agent
