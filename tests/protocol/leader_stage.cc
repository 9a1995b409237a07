#include "tests/protocol/leader_stage.h"

namespace ddprun::protocol_test {

// nodes=MIN..MAX or one number; the newest entry of the ledger, if there is one, is a generation of
// these members.
rendezvous::MachineConfig LeaderStage::config(const Words& words) {
    const std::string nodes = words.text("nodes").value_or("2");
    const auto dots = nodes.find("..");
    const int most = std::stoi(dots == std::string::npos ? nodes : nodes.substr(dots + 2));
    rendezvous::Limits limits = test::limits(std::stoi(nodes), most);
    limits.max_restarts = static_cast<int>(words.number("restarts", limits.max_restarts));
    limits.hang_timeout = words.seconds("hang").value_or(Duration{});
    limits.times.last_call = words.seconds("last_call").value_or(limits.times.last_call);
    if (const auto on_join = words.text("on_join"))
        limits.on_join = *on_join == "spare"  ? rendezvous::OnJoin::spare
                         : *on_join == "wait" ? rendezvous::OnJoin::wait
                                              : rendezvous::OnJoin::restart;
    rendezvous::MachineConfig config = rendezvous::Script::config(limits);
    config.requeue = static_cast<int>(words.number("allocation", 0));
    config.succession = words.text("entry").has_value();
    config.in_slurm = words.text("allocation").has_value();
    return config;
}

std::optional<rendezvous::LedgerEntry> LeaderStage::newest(const Words& words) {
    const std::int64_t number = words.number("entry", -1);
    const std::int64_t generation = words.number("generation", number);
    const std::string of = words.text("of").value_or("a,b");
    const int requeue = static_cast<int>(words.number("written_in", 0));
    if (number < 0) return {};
    rendezvous::LedgerEntry entry;
    entry.number = EntryNumber{number};
    entry.leader = test::node("old", 99);
    entry.at = {test::node("old"), "at old", 1};
    entry.requeue = requeue;
    std::vector<rendezvous::NodeId> members;
    std::istringstream in(of);
    for (std::string name; std::getline(in, name, ',');) members.push_back(test::node(name));
    entry.assignment = test::assignment(generation, members);
    for (rendezvous::Member& member : entry.assignment.members) {
        member.offer.address = "at " + member.node.name;
        member.offer.service_port = 1;
    }
    return entry;
}

Lines LeaderStage::step(double now, const rendezvous::Event& event) {
    Lines all;
    for (const rendezvous::Effect& effect : machine_.step(test::at(now), event)) {
        if (const auto* e = std::get_if<rendezvous::CreateEntry>(&effect)) creating_ = e->entry;
        std::string line = rendezvous::describe(effect);
        const auto* sent = std::get_if<rendezvous::Send>(&effect);
        const auto* closed = std::get_if<rendezvous::Close>(&effect);
        if (sent || closed) {
            const auto to = (sent ? sent->session : closed->session).value;
            const auto name = names_.find(to);
            if (name != names_.end()) line = name->second + line.substr(line.find(':'));
            const auto* ack = sent ? std::get_if<rendezvous::Ack>(&sent->message) : nullptr;
            if (ack && name != names_.end()) beats_[name->second].echo = ack->number;
        }
        all.push_back(line);
    }
    return all;
}

// The values of the last Beat stay, until a line changes it.
void LeaderStage::change(rendezvous::Beat& beat, const Words& words) const {
    beat.floor = Generation{words.number("floor", beat.floor.value)};
    beat.running = Generation{words.number("running", beat.running.value)};
    beat.seen = EntryNumber{words.number("seen", beat.seen.value)};
    beat.echo = words.number("echo", beat.echo);
    beat.step = words.number("step", beat.step);
    beat.snapshot = words.number("snapshot", beat.snapshot);
    beat.complete = words.number("complete", beat.complete) != 0;
    beat.silent = words.seconds("silent").value_or(beat.silent);
    // A new report of progress, by the slowest rank of the node: rank@step.
    if (const auto progress = words.text("progress")) {
        ++beat.reports;
        const auto at = progress->find('@');
        beat.slowest = {{std::stoi(*progress), std::stoll(progress->substr(at + 1))}};
    }
    if (words.text("met")) beat.reach = rendezvous::Reach::met;
    // Its lease of that generation passed while it was stopped for so long.
    if (const auto stopped = words.seconds("stopped")) {
        beat.stood_still = *stopped;
        beat.marks.generation = Generation{words.number("in", 0)};
    }
}

Lines LeaderStage::join(double now, const std::string& name, const Words& words) {
    if (const auto number = words.text("process")) processes_[name] = std::stoll(*number);
    const std::int64_t process = processes_.try_emplace(name, 1).first->second;
    const rendezvous::Session next{static_cast<std::int64_t>(names_.size()) + 1};
    sessions_[name] = next;
    names_[next.value] = name;
    rendezvous::Beat& beat = beats_[name];
    if (beat.number == 0) beat.silent = Duration::max();
    beat.number = 1;
    beat.echo = 0;
    change(beat, words);
    const int requeue = static_cast<int>(words.number("allocation", requeue_));
    const rendezvous::NodeId id = test::node(name, static_cast<std::uint64_t>(process));
    Lines all = come(now, name, rendezvous::Hello{"job", id, "1", requeue});
    if (std::ranges::count(all, name + ": closed")) return all;
    rendezvous::Offer offer = test::offer(static_cast<int>(words.number("slots", 1)));
    offer.address = "at " + name;
    offer.service_port = 1;
    if (const auto rank = words.text("rank")) offer.node_rank = std::stoi(*rank);
    const rendezvous::Join message{offer, beat, successor_ ? 5U : 0U};
    for (const std::string& line : come(now, name, message)) all.push_back(line);
    return all;
}

Lines LeaderStage::beat(double now, const std::string& name, const Words& words) {
    rendezvous::Beat& beat = beats_[name];
    ++beat.number;
    change(beat, words);
    return come(now, name, beat);
}

// The ledger's answers: to a create, to a read, to a look.
Lines LeaderStage::ledger(double now, const Words& words) {
    using Outcome = rendezvous::LedgerCreated::Outcome;
    const std::string what = words.word(1);
    if (what == "won") return step(now, rendezvous::LedgerCreated{Outcome::won, creating_, {}});
    if (what == "failed")
        return step(now, rendezvous::LedgerCreated{Outcome::failed, creating_, "disk full"});
    // Another leader's entry has that number; the line describes it.
    if (what == "lost")
        return step(now, rendezvous::LedgerCreated{Outcome::lost, *newest(words), {}});
    if (what == "read") {
        const auto entry = newest(words);
        return step(now, rendezvous::LedgerRead{entry ? std::vector{*entry}
                                                      : std::vector<rendezvous::LedgerEntry>{}});
    }
    if (what == "looked")
        return step(now, rendezvous::LedgerLooked{words.number("look", 1),
                                                  static_cast<int>(words.number("newest", 0))});
    unknown(words);
}

Lines LeaderStage::operate(double now, const Words& words) {
    const std::string what = words.word(1);
    rendezvous::OperatorAction action;
    if (what == "stop")
        action = rendezvous::StopJob{words.word(2) == "after_snapshot"};
    else if (what == "restart")
        action = rendezvous::RestartGeneration{Generation{words.number("generation", 0)}};
    else if (what == "drain")
        action = rendezvous::DrainNode{words.word(2)};
    else if (what == "snapshot")
        action = rendezvous::AskSnapshot{};
    else if (what == "limits") {
        rendezvous::OperatorLimits limits;
        if (words.text("min")) limits.min_nodes = static_cast<int>(words.number("min", 0));
        if (words.text("max")) limits.max_nodes = static_cast<int>(words.number("max", 0));
        if (words.text("restarts"))
            limits.max_restarts = static_cast<int>(words.number("restarts", 0));
        action = rendezvous::SetLimits{limits};
    } else
        unknown(words);
    return step(now, rendezvous::Operated{"alice", action});
}

Lines LeaderStage::show() const {
    const rendezvous::Snapshot s = machine_.snapshot();
    std::string line = std::string("leader is ") + to_string(s.phase);
    if (s.held_until != kNever && s.held_until > kLongAgo)
        line += ", H " + to_text(s.held_until.time_since_epoch());
    return {line + ", restarts " + std::to_string(s.restarts)};
}

// Quiet time: each second the nodes send a Beat, until a second before that time. Of the effects
// only those are shown that are no Ack.
Lines LeaderStage::quiet(double now, double until, const Words& words) {
    Lines all;
    for (; now < until; now += 1) {
        const auto keep = [&](const Lines& lines) {
            std::ranges::copy_if(lines, std::back_inserter(all), [](const std::string& line) {
                return line.find(": Ack") == std::string::npos;
            });
        };
        keep(step(now, rendezvous::Tick{}));
        for (std::size_t i = 1; i < words.count(); ++i) keep(beat(now, words.word(i), words));
    }
    return all;
}

Lines LeaderStage::play(double now, const Words& words) {
    const std::string name = words.word(0), what = words.word(1);
    if (const auto until = words.text("until")) return quiet(now, std::stod(*until), words);
    if (name == "time") return step(now, rendezvous::Tick{});
    if (name == "show") return show();
    if (name == "ledger") return ledger(now, words);
    if (name == "operator") return operate(now, words);
    // Generation 0 is recorded at 0.6, and all nodes that are named run it since 1. H is 8.
    if (name == "run") {
        for (std::size_t i = 1; i < words.count(); ++i) join(0, words.word(i), Words(""));
        for (std::size_t i = 1; i < words.count(); ++i) beat(0.5, words.word(i), Words(""));
        step(0.6,
             rendezvous::LedgerCreated{rendezvous::LedgerCreated::Outcome::won, creating_, {}});
        for (std::size_t i = 1; i < words.count(); ++i) beat(1, words.word(i), Words("running=0"));
        return {};
    }
    // The standing of another leader that was asked.
    if (what == "answers") {
        const bool holds = words.text("holds").has_value();
        return step(
            now, rendezvous::Called{test::node(name),
                                    {test::node(name), words.word(2) == "leads",
                                     holds ? Generation{words.number("holds", 0)} : kNoGeneration,
                                     EntryNumber{words.number("entry", -1)}}});
    }
    if (what == "joins") return join(now, name, words);
    if (what == "beats") return beat(now, name, words);
    // With `as`, the message comes on the connection of another node.
    if (what == "gone")
        return come(
            now, words.text("as").value_or(name),
            rendezvous::Gone{test::node(
                name, static_cast<std::uint64_t>(processes_.try_emplace(name, 1).first->second))});
    if (what == "leaves") return come(now, name, rendezvous::Leave{"its batch step ends"});
    if (what == "unusable") return come(now, name, rendezvous::Unusable{"no GPU"});
    if (what == "disconnects") return step(now, rendezvous::ConnectionLost{session(name)});
    if (what == "fails") {
        const int rank = static_cast<int>(words.number("rank", 0));
        auto outcome = test::exited(rank, static_cast<int>(words.number("code", 1)));
        outcome.age = words.seconds("ago").value_or(Duration{});
        const Generation generation{words.number("generation", 0)};
        return come(now, name, rendezvous::Report{generation, {outcome}});
    }
    if (what == "stops") {
        rendezvous::StopAsked asked{static_cast<int>(words.number("signal", 15)), "signal"};
        asked.left = words.seconds("left");
        if (words.word(2) == "time_limit") asked.cause = rendezvous::StopCause::time_limit;
        if (words.word(2) == "to_leave") asked.cause = rendezvous::StopCause::node_leaves;
        asked.requeue = words.word(3) == "requeue";
        return come(now, name, asked);
    }
    unknown(words);
}

}  // namespace ddprun::protocol_test
