#include "tests/protocol/node_stage.h"

namespace ddprun::protocol_test {

agent::MachineConfig NodeStage::config(const Words& words) {
    agent::MachineConfig config;
    config.run_id = "job";
    config.node = test::node("a");
    config.offer = test::offer();
    config.offer.address = "at a";
    config.offer.service_port = 1;
    config.version = "1";
    config.may_lead = words.word(1) == "may_lead";
    return config;
}

Lines NodeStage::step(double now, const agent::Event& event) {
    Lines all;
    for (const agent::Effect& effect : machine_.step(test::at(now), event))
        if (const auto* tell = std::get_if<agent::TellWorkers>(&effect))
            all.push_back("to workers: " + agent::describe(tell->notice));
        else
            all.push_back(agent::describe(effect));
    for (std::string& line : all) line.erase(line.find_last_not_of(' ') + 1);
    return all;
}

Lines NodeStage::assigned(double now, const Words& words) {
    rendezvous::NodePlace place = agent::first_of_two(words.number("generation", 0));
    return told(now, rendezvous::Assigned{EntryNumber{words.number("entry", 0)}, place,
                                          words.number("beat", 2),
                                          words.seconds("left").value_or(test::sec(8))});
}

// The newest Ack, from the leader that this node has seen last. Without `left` it grants nothing.
Lines NodeStage::ack(double now, const Words& words) {
    const agent::Snapshot is = machine_.snapshot();
    rendezvous::Ack ack;
    ack.number = ++acks_;
    ack.beat = words.number("beat", 0);
    ack.entry = EntryNumber{words.number("entry", is.seen.value)};
    ack.held = is.running;
    ack.remaining = words.seconds("left");
    ack.over = Generation{words.number("over", -1)};
    if (const auto number = words.number("snapshot", 0))
        ack.snapshot = rendezvous::SnapshotAsked{number, "alice"};
    return told(now, ack);
}

Lines NodeStage::show() const {
    const agent::Snapshot s = machine_.snapshot();
    return {std::string("node is ") + to_string(s.phase) + ", floor " +
            std::to_string(s.floor.value) + ", seen " + std::to_string(s.seen.value) +
            ", deadline " + agent::text(s.deadline)};
}

Lines NodeStage::play(double now, const Words& words) {
    const std::string name = words.word(0), what = words.word(1);
    const auto number = [&](const char* key, int otherwise) {
        return static_cast<int>(words.number(key, otherwise));
    };
    // With `until` it comes each half second; Beats are not shown then.
    if (name == "time") {
        if (const auto until = words.text("until")) {
            Lines all;
            for (; now < std::stod(*until); now += 0.5)
                std::ranges::copy(agent::but_beats(step(now, agent::Tick{})),
                                  std::back_inserter(all));
            return all;
        }
        return step(now, agent::Tick{});
    }
    if (name == "show") return show();
    if (name == "starts") return step(now, agent::Started{});
    // Which leader welcomes it, and whether this node reads that leader's ledger.
    if (name == "welcome") {
        const std::string leader = words.text("leader").value_or("leader");
        step(now, agent::LedgerFound{words.text("order").has_value()});
        std::vector<rendezvous::Peer> order;
        std::istringstream in(words.text("order").value_or(""));
        for (std::string each; std::getline(in, each, ',');)
            order.push_back({test::node(each), "at " + each, 1});
        return told(now, rendezvous::Welcome{test::node(leader),
                                             {},
                                             order,
                                             2,
                                             {test::node(leader), "at " + leader, 1},
                                             "a ledger",
                                             5});
    }
    if (name == "ack") return ack(now, words);
    if (name == "assigned") return assigned(now, words);
    // Welcomed at 0; Ack 1 at 0.1, echoed by Beat 2; runs generation 0 since 0.2, until 8.1.
    if (name == "run" || name == "join") {
        step(0, agent::Started{});
        play(0, Words("welcome"));
        play(0.1, Words("ack"));
        if (name == "run") play(0.2, Words("assigned left=8 beat=2"));
        return {};
    }
    if (name == "worker" && what == "exits")
        return step(now, agent::WorkerExited{Generation{words.number("generation", 0)},
                                             test::exited(0, number("code", 0)), test::at(now)});
    if (name == "worker" && what == "snapshot")
        return step(now, agent::WorkerProgress{Generation{0}, words.number("step", 0),
                                               words.number("step", 0)});
    if (name == "swept") return step(now, agent::Swept{Generation{number("generation", 0)}});
    if (name == "keeper" && what == "dies") return step(now, agent::KeeperDied{});
    if (name == "signal") return step(now, agent::SignalCame{std::stoi(what)});
    if (name == "link" && what == "lost") return step(now, agent::LinkLost{"connection reset"});
    if (name == "stop")
        return told(now, rendezvous::Stop{Generation{number("generation", 0)}, number("signal", 15),
                                          "asked by alice"});
    if (name == "finished")
        return told(now, rendezvous::Finished{test::ending(rendezvous::Verdict::worker_failed,
                                                           number("code", 1), "no restart left")});
    if (name == "elsewhere")
        return told(now, rendezvous::Elsewhere{words.text("at").value_or(""), 1});
    unknown(words);
}

}  // namespace ddprun::protocol_test
