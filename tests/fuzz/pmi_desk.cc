// Fuzz target: the desks of two nodes with two workers each, under any bytes that their workers
// write, and the rounds between them as pmi_rounds.h keeps them: one at a time on each node, over
// when both nodes have brought something. What a worker writes may end that worker and nothing
// else: no desk begins a round within a round, both can read what the other has brought, and only
// who waits at a barrier hears of its end.
//
// The input is a row of pieces: one byte for worker and length, then that many bytes. A piece of
// length 0 is what a third node, which keeps to nothing, brings to a round of node 0.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>

#include "agent/pmi/pmi_desk.h"

namespace {

using ddprun::agent::pmi::Desk;

constexpr int kNodes = 2, kSlots = 2;

void require(bool holds) {
    if (!holds) std::abort();
}

ddprun::rendezvous::NodePlace place(int node) {
    ddprun::rendezvous::NodePlace place;
    place.generation = ddprun::Generation{1};
    place.node_rank = node;
    place.nodes = kNodes;
    place.slots = kSlots;
    place.world_size = kNodes * kSlots;
    place.rank_offset = node * kSlots;
    return place;
}

struct Worker {
    std::string read;  // not yet a line
    bool ended = false;
    bool waits = false;
};

struct Node {
    explicit Node(int rank) : desk(place(rank)) {}
    Desk desk;
    std::array<Worker, kSlots> workers;
    std::optional<std::string> brought;  // a round is under way
};

// As the server does (pmi_server.cc): nothing is read from a worker that is to be ended.
void carry_out(Node& node, const Desk::Outcome& outcome, int from) {
    for (const Desk::Answer& answer : outcome.answers) require(answer.index == from);
    if (outcome.fault) {
        require(outcome.fault->index == from && !outcome.fault->why.empty());
        node.workers[static_cast<std::size_t>(from)].ended = true;
    }
    if (!outcome.round) return;
    require(!node.brought);
    node.brought = outcome.round;
}

void end_round(std::array<Node, kNodes>& nodes) {
    if (!nodes[0].brought || !nodes[1].brought) return;
    const std::vector<std::string> all{*nodes[0].brought, *nodes[1].brought};
    for (Node& node : nodes) {
        const auto over = node.desk.round_over(all);
        require(over && over->answers.size() == kSlots && !over->round && !over->fault);
        std::set<int> told;
        for (const Desk::Answer& answer : over->answers) told.insert(answer.index);
        require(told.size() == kSlots);
        for (Worker& worker : node.workers) {
            require(worker.waits);
            worker.waits = false;
        }
        node.brought.reset();
    }
}

void take_lines(std::array<Node, kNodes>& nodes, Node& node, int index) {
    Worker& worker = node.workers[static_cast<std::size_t>(index)];
    for (std::size_t end = 0;
         !worker.ended && (end = worker.read.find('\n')) != std::string::npos;) {
        const std::string line = worker.read.substr(0, end);
        worker.read.erase(0, end + 1);
        const Desk::Outcome outcome = node.desk.line(index, line);
        // No answer and no fault: it waits for the others, or tells of a spawn.
        worker.waits |= !outcome.fault && outcome.answers.empty() &&
                        line.find("barrier_in") != std::string::npos;
        carry_out(node, outcome, index);
        end_round(nodes);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    std::string_view input(reinterpret_cast<const char*>(data), size);
    std::array<Node, kNodes> nodes{Node(0), Node(1)};
    while (!input.empty()) {
        const auto head = static_cast<unsigned char>(input.front());
        const std::size_t length = head / 4;
        Node& node = nodes[head / 2 % kNodes];
        const int index = head % kSlots;
        input.remove_prefix(1);
        if (length == 0) {
            Desk alone(place(0));
            (void)alone.round_over({std::string(input)});
            continue;
        }
        const std::string_view piece = input.substr(0, length);
        input.remove_prefix(piece.size());
        node.workers[static_cast<std::size_t>(index)].read += piece;
        take_lines(nodes, node, index);
    }
    return 0;
}
