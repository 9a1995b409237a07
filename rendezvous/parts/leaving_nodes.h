// Nodes that leave while the job goes on, each with the end that it gets (PROTOCOL.md, rule 23).
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/model/events.h"

namespace ddprun::rendezvous {

class LeavingNodes {
  public:
    // The leader does not know the members yet.
    void asks_early(Session session, const StopAsked& asked) { early_.push_back({session, asked}); }
    std::vector<std::pair<Session, StopAsked>> take_early() { return std::exchange(early_, {}); }
    void add(const NodeId& node, Ending ending) { endings_.emplace(node, std::move(ending)); }
    void left(const NodeId& node) { endings_.erase(node); }
    bool contains(const NodeId& node) const { return endings_.contains(node); }
    const Ending& ending(const NodeId& node) const { return endings_.at(node); }
    // "node gpu03 leaves (SIGTERM); the job goes on without it".
    const std::string& sentence(const NodeId& node) const { return ending(node).sentence; }
    std::vector<NodeId> nodes() const {
        std::vector<NodeId> all;
        for (const auto& each : endings_) all.push_back(each.first);
        return all;
    }

  private:
    std::map<NodeId, Ending> endings_;
    std::vector<std::pair<Session, StopAsked>> early_;
};

}  // namespace ddprun::rendezvous
