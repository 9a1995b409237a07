// The leader of a script: the rendezvous machine, with a ledger and nodes that a script moves. Each
// line of a script is one event, and the effects of the machine are the lines below it. The machine
// is pure, so a script gives the time of each event. README.md lists the events.
#pragma once

#include "tests/protocol/words.h"
#include "tests/rendezvous/machine/machine_script.h"

namespace ddprun::protocol_test {

class LeaderStage {
  public:
    explicit LeaderStage(const Words& words)
        : machine_(config(words), test::at(0)),
          requeue_(static_cast<int>(words.number("allocation", 0))) {
        successor_ = words.text("entry").has_value();
        if (const auto entry = newest(words)) before_.push_back(*entry);
    }
    // The service leads from now on, and reads its ledger.
    Lines begin() {
        const rendezvous::Peer self{test::node("leader"), "leader", 1};
        step(0, successor_ ? rendezvous::Lead{self, "a ledger", 5} : rendezvous::Lead{self});
        return step(0, rendezvous::LedgerRead{before_});
    }
    Lines play(double now, const Words& words);

  private:
    static rendezvous::MachineConfig config(const Words& words);
    static std::optional<rendezvous::LedgerEntry> newest(const Words& words);
    Lines step(double now, const rendezvous::Event& event);
    Lines join(double now, const std::string& name, const Words& words);
    Lines beat(double now, const std::string& name, const Words& words);
    Lines quiet(double now, double until, const Words& words);
    Lines ledger(double now, const Words& words);
    Lines operate(double now, const Words& words);
    Lines show() const;
    void change(rendezvous::Beat& beat, const Words& words) const;
    Lines come(double now, const std::string& name, const rendezvous::ToLeader& message) {
        return step(now, rendezvous::Came{session(name), message});
    }
    rendezvous::Session session(const std::string& name) const {
        const auto found = sessions_.find(name);
        if (found == sessions_.end()) throw std::invalid_argument(name + " has not joined");
        return found->second;
    }

    rendezvous::Machine machine_;
    bool successor_ = false;
    std::vector<rendezvous::LedgerEntry> before_;
    rendezvous::LedgerEntry creating_;
    std::map<std::string, rendezvous::Session> sessions_;
    std::map<std::int64_t, std::string> names_;
    std::map<std::string, rendezvous::Beat> beats_;
    std::map<std::string, std::int64_t> processes_;
    int requeue_;  // the restart count of this allocation
};

}  // namespace ddprun::protocol_test
