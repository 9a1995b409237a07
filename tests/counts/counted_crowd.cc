// Many nodes that meet a leader, and beat: both sides over loopback in one process, so that tests/
// counts/instructions.py can count what a node and a Beat cost under callgrind. What is done for
// each of many and looks at all of them shows in these counts, and at no smaller number of nodes.
//
//   counted_crowd NODES BEATS
//
// NODES nodes join the leader, and each then sends BEATS beats that are answered. One more node is
// awaited, so that no generation begins. Nobody has to prove who he is: how many instructions a
// proof takes depends on the processor.
#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/ledger/ledger_memory.h"
#include "rendezvous/link/client.h"
#include "rendezvous/service/service.h"

namespace {

using namespace ddprun;
namespace asio = boost::asio;
using asio::ip::tcp;

// Less than was asked for would be cheap work.
void need(bool good) {
    if (!good) std::abort();
}

rendezvous::Limits limits(int nodes) {
    rendezvous::Limits limits;
    limits.min_nodes = limits.max_nodes = nodes + 1;
    // However slow the machine is, nobody is silent for too long.
    limits.times.lease = std::chrono::hours{1};
    return limits;
}

rendezvous::MachineConfig leader_config(int nodes) {
    rendezvous::MachineConfig config;
    config.run_id = "crowd";
    config.self = {"leader", Incarnation{1}};
    config.limits = limits(nodes);
    return config;
}

// A node's side of the link without its agent.
class Node {
  public:
    Node(asio::io_context& loop, int number, int beats, int& done)
        : id_{"node" + std::to_string(number), Incarnation{2}},
          beats_(beats),
          done_(done),
          client_(loop, [](const Note&) {},
                  {.on_up = [](const std::string&) {},
                   .on_message = [this](const rendezvous::ToNode& message) { hear(message); },
                   .on_lost = [](const Error&) { need(false); }}) {}

    void call(std::uint16_t port, int nodes) {
        client_.connect({{"127.0.0.1", port}},
                        rendezvous::Hello{
                            .run_id = "crowd", .node = id_, .version = {}, .limits = limits(nodes)},
                        kNever);
    }

  private:
    void hear(const rendezvous::ToNode& message) {
        if (std::get_if<rendezvous::Welcome>(&message)) {
            client_.send(rendezvous::Join{.offer = {}, .beat = next_beat()});
        } else if (const auto* ack = std::get_if<rendezvous::Ack>(&message)) {
            beat_.echo = ack->number;
            if (ack->beat != beat_.number || is_done_) return;  // an Ack for another reason
            is_done_ = beat_.number > beats_;                   // the first one came with the Join
            is_done_ ? void(++done_) : client_.send(next_beat());
        }
    }
    // Each has news, a higher floor, so that each is answered.
    rendezvous::Beat next_beat() {
        beat_.floor = Generation{++beat_.number};
        return beat_;
    }

    const rendezvous::NodeId id_;
    const int beats_;
    int& done_;
    rendezvous::Beat beat_;
    bool is_done_ = false;
    rendezvous::Client client_;
};

void meet(int nodes, int beats) {
    asio::io_context loop(1);
    rendezvous::LedgerMemory ledger(loop);
    tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
    const std::uint16_t port = acceptor.local_endpoint().port();
    // As ddprun does with each line of a leader.
    rendezvous::Service* leader = nullptr;
    const auto log = [&](const Note&) { need(leader->leads()); };
    rendezvous::Service service(loop, std::move(acceptor), leader_config(nodes), ledger, log,
                                [](const rendezvous::Ending&) { need(false); });
    leader = &service;
    service.start();
    int done = 0;
    std::vector<std::unique_ptr<Node>> crowd;
    for (int number = 0; number < nodes; ++number) {
        crowd.push_back(std::make_unique<Node>(loop, number, beats, done));
        crowd.back()->call(port, nodes);
    }
    while (done < nodes) need(loop.run_one() > 0);
    need(service.snapshot().connected.size() == crowd.size());
    std::_Exit(0);  // what an end costs is not counted
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return std::fputs("usage: counted_crowd NODES BEATS\n", stderr), 2;
    // Each node takes two descriptors.
    rlimit many{};
    (void)::getrlimit(RLIMIT_NOFILE, &many);
    many.rlim_cur = many.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &many);
    meet(std::atoi(argv[1]), std::atoi(argv[2]));
}
