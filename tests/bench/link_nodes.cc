// Many nodes of a job in one process, for tests/bench/faults.py. Each node has the product's own
// agent machine, connection, identity and (dormant) service on a port of its own. Only keeper and
// workers are missing: a worker "starts" when it is asked for, and ends at its first signal. So the
// leader, a real ddprun, does the work that so many real nodes would cause.
//
//   link_nodes PORT NODES SECRET-FILE RUN-ID FAILURES [SILENT]
//
// Nodes 1 to NODES-1 call a leader on loopback, which the caller has started as node 0. The program
// prints
//
//   welcomed SECONDS   all have proved themselves and heard the leader's welcome
//   met SECONDS        all run the first generation
//   told SECONDS       one worker has failed, and all nodes have been told to stop
//   again SECONDS      all run the next generation
//
// The first two times count from the first connect, the others from the failure. FAILURES says how
// many times a worker fails. Then the nodes beat until standard input ends. With SILENT the nodes
// have no service of their own: that takes a descriptor less for each node.
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/machine/machine.h"
#include "base/overload.h"
#include "base/release.h"
#include "base/system/boot_clock.h"
#include "base/system/random_bytes.h"
#include "rendezvous/ledger/ledger_memory.h"
#include "rendezvous/link/client.h"
#include "rendezvous/secret/secret.h"
#include "rendezvous/service/service.h"

namespace ddprun {
namespace {

namespace asio = boost::asio;
using agent::Event;
using asio::ip::tcp;
using rendezvous::ToLeader;

struct Job {
    std::uint16_t port = 0;
    int nodes = 0;
    std::string run_id;
    bool silent = false;
};

// What all nodes share, and what they report. The three callbacks count for the whole crowd.
struct Surroundings {
    asio::io_context& loop;
    rendezvous::Secrets& secrets;
    rendezvous::Ledger& ledger;
    Job job;
    std::function<void()> on_welcome, on_spawn, on_told;
};

// Ten thousand nodes would fill the console with their remarks, so only warnings are printed.
void warn(const Note& note) {
    if (note.level >= Note::Level::warn)
        std::fprintf(stderr, "link_nodes: %s\n", note.sentence.c_str());
}

// The parts of a real node, wired as in agent/node/runner.cc.
class Node {
  public:
    Node(Surroundings& around, int rank)
        : around_(around),
          id_{"node" + std::to_string(rank), Incarnation{random_number()}},
          machine_(machine_config(rank), boot_now()),
          client_(around.loop, warn, callbacks(), &around.secrets),
          timer_(around.loop) {
        // Without a service the leader finds nobody to call back, and the node needs no listening
        // socket.
        if (around.job.silent) return;
        tcp::acceptor acceptor(around.loop, {asio::ip::address_v4::loopback(), 0});
        port_ = acceptor.local_endpoint().port();
        service_.emplace(
            around.loop, std::move(acceptor), service_config(), around.ledger, warn,
            [](const rendezvous::Ending&) {}, &around.secrets);
        service_->listen();
    }

    void start() { post(agent::Started{}); }
    // A failure of the program: exit code 1, no signal.
    void fail_worker() { end_worker(1, 0); }

  private:
    rendezvous::MachineConfig service_config() const {
        rendezvous::MachineConfig config;
        config.run_id = around_.job.run_id;
        config.self = id_;
        config.version = this_release().version;
        config.limits.min_nodes = config.limits.max_nodes = around_.job.nodes;
        return config;
    }
    agent::MachineConfig machine_config(int rank) const {
        agent::MachineConfig config;
        config.run_id = around_.job.run_id;
        config.node = id_;
        config.version = this_release().version;
        config.offer.node_rank = rank;
        config.offer.addresses = {"127.0.0.1"};
        config.offer.store_port = 1;  // never used: node 0, a real ddprun, has the store
        config.limits.min_nodes = config.limits.max_nodes = around_.job.nodes;
        return config;
    }
    rendezvous::Client::Callbacks callbacks() {
        return {.on_up = [this](const std::string& address) { post(agent::LinkUp{address}); },
                .on_message =
                    [this](const rendezvous::ToNode& m) {
                        if (std::holds_alternative<rendezvous::Welcome>(m)) around_.on_welcome();
                        post(agent::MessageCame{m});
                    },
                .on_lost = [this](const Error& why) { post(agent::LinkLost{why.sentence()}); }};
    }

    // An event that is caused by an effect waits until the current one is done, so that step() is
    // never entered twice.
    void post(Event event) {
        mailbox_.push_back(std::move(event));
        if (draining_) return;
        draining_ = true;
        while (!mailbox_.empty()) {
            const Event next = std::move(mailbox_.front());
            mailbox_.pop_front();
            for (const agent::Effect& effect : machine_.step(boot_now(), next)) perform(effect);
        }
        draining_ = false;
        arm();
    }
    // The machine has one timer: the moment at which it wants a Tick.
    void arm() {
        const Time next = machine_.next_deadline();
        if (next == armed_) return;
        armed_ = next;
        timer_.cancel();
        if (next == kNever) return;
        timer_.expires_after(std::max(next - boot_now(), Duration{0}));
        timer_.async_wait([this](const boost::system::error_code& error) {
            if (error) return;
            armed_ = kNever;
            post(agent::Tick{});
        });
    }
    void perform(const agent::Effect& effect) {
        // Only the effects that the leader can notice. A sweep finds nothing left at once, because
        // no process was started.
        std::visit(Overload{[&](const agent::Connect& e) {
                                client_.connect({{"127.0.0.1", around_.job.port}},
                                                ToLeader(e.hello), e.deadline, e.once);
                            },
                            [&](const agent::SendMessage& e) { send(e.message); },
                            [&](const agent::Spawn& e) {
                                running_ = e.place;
                                around_.on_spawn();
                            },
                            [&](const agent::SignalWorkers& e) {
                                around_.on_told();
                                end_worker(0, e.signal);
                            },
                            [&](const agent::Sweep& e) { post(agent::Swept{e.generation}); },
                            [&](const agent::Exit& e) {
                                std::fprintf(stderr, "link_nodes: %s\n", e.ending.sentence.c_str());
                                std::exit(1);
                            },
                            [&](const agent::LeaderHeard& e) {
                                if (service_) service_->heard(e.leader);
                            },
                            [](const auto&) {}},  // notes, deadlines, the store: not used
                   effect);
    }
    // The machine is built before the port of the service is known, so the port is filled in here.
    void send(ToLeader message) {
        if (auto* join = std::get_if<rendezvous::Join>(&message)) join->offer.service_port = port_;
        client_.send(message);
    }
    void end_worker(int code, int signal) {
        if (!running_) return;
        agent::WorkerExited exited{running_->generation, {}, boot_now()};
        exited.outcome.rank = running_->rank_offset;
        exited.outcome.exit_code = code;
        exited.outcome.signal = signal;
        exited.outcome.sentence = "rank " + std::to_string(exited.outcome.rank) + " has ended";
        // Before the event: the machine may ask for the next worker at once.
        running_.reset();
        post(std::move(exited));
    }

    Surroundings& around_;
    const rendezvous::NodeId id_;
    std::optional<rendezvous::Service> service_;
    std::uint16_t port_ = 0;
    agent::Machine machine_;
    rendezvous::Client client_;
    asio::steady_timer timer_;
    std::deque<Event> mailbox_;
    bool draining_ = false;
    Time armed_ = kNever;
    std::optional<rendezvous::NodePlace> running_;
};

// Counts the nodes through the job's stages, and says how long each took.
class Crowd {
  public:
    Crowd(Surroundings& around, int failures) : loop_(around.loop), failures_(failures) {
        around.on_welcome = [this] { count(welcomed_, "welcomed"); };
        around.on_spawn = [this] { count(spawned_, generation_ == 0 ? "met" : "again"); };
        around.on_told = [this] { count(told_, "told"); };
        for (int rank = 1; rank < around.job.nodes; ++rank)
            nodes_.push_back(std::make_unique<Node>(around, rank));
    }
    void start() {
        since_ = boot_now();
        for (const auto& node : nodes_) node->start();
    }

  private:
    void count(std::size_t& counter, const char* word) {
        // The failed worker is told nothing: it has ended.
        const std::size_t all = nodes_.size() - (&counter == &told_ ? 1 : 0);
        if (++counter < all) return;
        counter = 0;
        const std::chrono::duration<double> seconds = boot_now() - since_;
        std::printf("%s %.4f\n", word, seconds.count());
        std::fflush(stdout);
        if (&counter == &spawned_) next();
    }
    // Two seconds later, so that the end of this start is not part of the next time.
    void next() {
        ++generation_;
        if (generation_ > failures_) return;
        timer_.expires_after(std::chrono::seconds{2});
        timer_.async_wait([this](const boost::system::error_code&) {
            since_ = boot_now();
            nodes_[nodes_.size() / 2]->fail_worker();
        });
    }

    asio::io_context& loop_;
    const int failures_;
    int generation_ = 0;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::size_t welcomed_ = 0, spawned_ = 0, told_ = 0;
    Time since_{};
    asio::steady_timer timer_{loop_};
};

int run(const Job& job, const std::string& secret, int failures) {
    // Each node takes one or two descriptors.
    rlimit many{};
    (void)::getrlimit(RLIMIT_NOFILE, &many);
    many.rlim_cur = many.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &many);
    auto read = rendezvous::read_secret_file(secret);
    if (!read) return std::fprintf(stderr, "link_nodes: %s\n", read.error().sentence().c_str()), 2;
    asio::io_context loop(1);
    FileThread files(loop);
    rendezvous::Secrets secrets(loop, files,
                                {rendezvous::IdentityMode::require, std::move(*read), {}});
    rendezvous::LedgerMemory ledger(loop);
    Surroundings around{loop, secrets, ledger, job, {}, {}, {}};
    Crowd crowd(around, failures);
    crowd.start();
    // The caller closes standard input when it has measured all.
    asio::posix::stream_descriptor input(loop, ::dup(STDIN_FILENO));
    input.async_wait(asio::posix::stream_descriptor::wait_read, [&](const auto&) { loop.stop(); });
    loop.run();
    std::_Exit(0);  // the destructors of ten thousand connections would take long
}

}  // namespace
}  // namespace ddprun

int main(int argc, char** argv) {
    if (argc < 6 || argc > 7) {
        std::fputs("link_nodes PORT NODES SECRET-FILE RUN-ID FAILURES [SILENT]\n", stderr);
        return 2;
    }
    const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
    const ddprun::Job job{port, std::atoi(argv[2]), argv[4], argc == 7};
    return ddprun::run(job, argv[3], std::atoi(argv[5]));
}
