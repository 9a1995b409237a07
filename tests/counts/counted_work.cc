// Work whose instructions are counted: what ddprun reads, what travels, and an example's compute.
// tests/counts/instructions.py runs it under callgrind with two numbers of turns; the difference is
// the work alone.
//
//   counted_work options|hostlist|store|link|mlp TURNS
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "examples/mlp_loops.h"
#include "launcher/options/options.h"
#include "rendezvous/wire/wire.h"
#include "slurm/hostlist.h"
#include "store/protocol/protocol.h"
#include "tests/rendezvous/examples.h"

namespace {

using namespace ddprun;

// Wrong input would be quick work.
void need(bool good) {
    if (!good) std::abort();
}

// A command line as in a batch script.
void options() {
    static const std::vector<std::string> words{
        "--nnodes=4:8",   "--nproc-per-node=8", "--rdzv-backend=c10d", "--rdzv-endpoint=n1:29500",
        "--rdzv-id=8812", "--max-restarts=3",   "--lease=10",          "--log-dir=logs",
        "--tee=3",        "train.py",           "--epochs=3",          "--data=/scratch/data"};
    need(static_cast<bool>(launcher::parse_options(words, {})));
}

// The list of a step of 1,000 nodes.
void hostlist() {
    const auto names = slurm::expand_hostlist("gpu[0001-0500,0600-0999],cpu[01-100]");
    need(names && names->size() == 1000);
}

// The store's wire format: a request to bytes and back, and its answer.
void store_codec() {
    static const store::Limits limits;
    static const std::vector<store::Request> requests{
        {store::Operation::validate, {}, {}, 0},
        {store::Operation::add, {"default_pg/0//cuda//timeout_count"}, {}, 1},
        {store::Operation::set, {"default_pg/0/rank_7"}, {std::string(128, 'v')}, 0},
        {store::Operation::wait, {"default_pg/0/rank_0", "default_pg/0/rank_1"}, {}, 0},
        {store::Operation::get, {"default_pg/0/rank_0"}, {}, 0}};
    store::Decoder decoder(limits);
    std::vector<store::Request> back;
    std::string bytes;
    for (const store::Request& request : requests) bytes += encode(request);
    need(static_cast<bool>(decoder.feed(bytes, true, back)) && back == requests);
    need(store::number_reply({}, 7).bytes.size() == 8);
}

// The agent link: each kind of message to bytes and back.
void link_codec() {
    for (const rendezvous::ToLeader& message : rendezvous::examples_to_leader())
        need(static_cast<bool>(rendezvous::decode_to_leader(encode(message))));
    for (const rendezvous::ToNode& message : rendezvous::examples_to_node())
        need(static_cast<bool>(rendezvous::decode_to_node(encode(message))));
}

// A step of the perceptron of `train` on one rank: 4,096 hidden units, a batch of 4.
void perceptron() {
    constexpr long kInputs = 16, kHidden = 4096, kSamples = 4;
    constexpr long kFirst = kInputs * kHidden, kAll = kFirst + 2 * kHidden + 1;
    static std::vector<float> values(kAll, 0.01f), momenta(kAll), gradients(kAll);
    static std::vector<float> x(kSamples * kInputs, 0.5f), hidden(kSamples * kHidden),
        out(kSamples);
    const float* first = values.data();
    const example::MlpNumbers net{kInputs, kHidden, first, first + kFirst, first + kFirst + kHidden,
                                  0};
    example::predict(net, x.data(), kSamples, hidden.data(), out.data());
    float* to = gradients.data();
    example::add_output_gradients(net, hidden.data(), out.data(), kSamples, to + kFirst + kHidden,
                                  to + kAll - 1);
    example::add_hidden_gradients(net, x.data(), hidden.data(), out.data(), kSamples, to,
                                  to + kFirst);
    example::descend(values.data(), momenta.data(), to, kAll, 1e-6f, 0.9f);
    need(out[0] > 0);
}

}  // namespace

int main(int argc, char** argv) {
    const std::map<std::string_view, std::function<void()>> work{{"options", options},
                                                                 {"hostlist", hostlist},
                                                                 {"store", store_codec},
                                                                 {"link", link_codec},
                                                                 {"mlp", perceptron}};
    const auto chosen = argc == 3 ? work.find(argv[1]) : work.end();
    if (chosen == work.end()) {
        std::fprintf(stderr, "usage: counted_work options|hostlist|store|link|mlp TURNS\n");
        return 2;
    }
    for (int turn = std::atoi(argv[2]); turn > 0; --turn) chosen->second();
}
