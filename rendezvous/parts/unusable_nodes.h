// Nodes that the job cannot use, and why: they said that they can run no worker, or they have
// another version.
//
// Pure; owned by the rendezvous machine.
#pragma once

#include <map>
#include <string>

#include "base/time.h"

namespace ddprun::rendezvous {

class UnusableNodes {
  public:
    // `why` follows the node's name: "is unusable: no GPU".
    void add(const std::string& node, const std::string& why, Time now) {
        if (why_.empty()) since_ = now;
        why_.emplace(node, why);
    }
    void forget(const std::string& node) { why_.erase(node); }
    bool contains(const std::string& node) const { return why_.contains(node); }
    // "is unusable: no GPU"; empty: it is usable.
    std::string why(const std::string& node) const {
        const auto found = why_.find(node);
        return found == why_.end() ? "" : found->second;
    }
    int count() const { return static_cast<int>(why_.size()); }
    Time since() const { return since_; }  // when the first one said so; kNever: none has

    // "node gpu01 is unusable: no GPU; and 2 more".
    std::string sentence() const {
        const auto& [node, why] = *why_.begin();
        const std::string more = std::to_string(count() - 1) + " more";
        return "node " + node + " " + why + (count() == 1 ? "" : "; and " + more);
    }

  private:
    std::map<std::string, std::string> why_;  // by the node's name
    Time since_ = kNever;
};

}  // namespace ddprun::rendezvous
