// Asks the flight recorders of this node's workers.
#include "diagnosis/recorder/flight_recorders.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/system/boot_clock.h"
#include "base/system/careful_open.h"
#include "diagnosis/recorder/flight_dump.h"
#include "diagnosis/recorder/nccl_pipes.h"
#include "diagnosis/recorder/recorder_sockets.h"

namespace ddprun::agent {
namespace {

// From the question on.
constexpr auto kServersAnswered = std::chrono::milliseconds{2500};
constexpr auto kAnswered = std::chrono::seconds{5};
// A recorder answers within milliseconds, but a tool may stop its process for a second meanwhile.
// NCCL's thread looks once a second.
constexpr auto kServerPatience = std::chrono::seconds{2};
constexpr auto kDumpPatience = std::chrono::milliseconds{2500};

constexpr const char* kFolderVariable = "DDPRUN_FLIGHT_RECORDER";
constexpr const char* kPipeVariable = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE";
constexpr const char* kDumpVariable = "TORCH_NCCL_DEBUG_INFO_TEMP_FILE";
constexpr const char* kNewDumpVariable = "TORCH_FR_DUMP_TEMP_FILE";  // it wins over the other

// The recorders of a worker: Gloo's, that of PyTorch's older NCCL and that of the newer one. Each
// is asked, since an answer without calls costs nothing.
struct Recorder {
    const char *name, *handler;
};
constexpr Recorder kRecorders[] = {{"gloo", "fr_trace_json"},
                                   {"nccl", "dump_nccl_trace_json"},
                                   {"nccl2", "fr_trace_json?backend=nccl2"}};

std::string value_of(const FlightRecorders::Variables& variables, const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
}

}  // namespace

// What a thread works on. It may outlive the object that has started it.
struct FlightRecorders::Round {
    RecorderOptions options;
    Places places;
    Generation generation;
    std::vector<int> ranks;
    std::vector<rendezvous::RecordedCalls> recorded;
    std::vector<std::pair<std::string, std::string>> files;  // name and text
    bool answered = false;                                   // a server has

    void ask_nccl() const {
        std::vector<AwaitedDump> dumps;
        if (places.pipes.empty() || places.dumps.empty()) return;
        for (const int rank : ranks) {
            const std::string dump = places.dumps + std::to_string(rank);
            const std::int64_t since = changed_at(dump);
            if (ask_by_pipe(places.pipes + std::to_string(rank) + ".pipe"))
                dumps.push_back({dump, since});
        }
        await_dumps(std::move(dumps), kDumpPatience);
    }

    void ask_servers() {
        if (!options.opens_server || places.folder.empty()) return;
        std::vector<RecorderQuestion> questions;
        for (const int rank : ranks)
            for (const Recorder& recorder : kRecorders)
                questions.push_back({std::to_string(generation.value) + "_" + std::to_string(rank),
                                     recorder.handler});
        std::vector<std::string> answers =
            ask_recorders(places.folder, questions, kServerPatience, kLongestDump);
        for (std::size_t i = 0; i < answers.size(); ++i) {
            const int rank = ranks[i / std::size(kRecorders)];
            auto calls = read_flight_dump(answers[i], rank);
            answered |= !answers[i].empty();
            if (calls.empty()) continue;
            const Recorder& recorder = kRecorders[i % std::size(kRecorders)];
            files.emplace_back(std::string("/flight_recorder_") + recorder.name + "_" +
                                   std::to_string(rank) + ".json",
                               std::move(answers[i]));
            std::ranges::move(calls, std::back_inserter(recorded));
        }
        recorded = put_together(std::move(recorded));
    }

    void keep() const {
        for (const auto& [name, text] : files)
            if (!places.kept.empty()) (void)replace_file(places.kept + name, text);
    }
};

FlightRecorders::FlightRecorders(boost::asio::io_context& loop, RecorderOptions options,
                                 const Variables& user, Say say)
    : options_(options), say_(std::move(say)), asking_(loop) {
    for (const char* name : {kPipeVariable, kDumpVariable, kNewDumpVariable})
        if (const auto found = user.find(name); found != user.end()) user_.insert(*found);
}

std::function<void(const std::string&)> FlightRecorders::furnish(bool keeps) const {
    if (!options_.opens_server && !(options_.nccl_pipe && keeps)) return {};
    return [made = made_](const std::string& temporary) {
        const std::string folder = temporary + "/recorders";
        const bool there = ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
        *made = there ? folder : std::string();
    };
}

// PyTorch ends the worker where it cannot make its pipe, so the folder must be there, on a file
// system of this host.
void FlightRecorders::begin(const std::string& temporary, const std::string& kept,
                            Variables& environment) {
    for (const char* name : {kFolderVariable, kPipeVariable, kDumpVariable})
        if (!user_.contains(name)) environment.erase(name);
    places_ = {{}, kept, {}, {}};
    if (options_.nccl_pipe) {
        places_.pipes = value_of(user_, kPipeVariable);
        places_.dumps = value_of(user_, kNewDumpVariable);
        if (places_.dumps.empty()) places_.dumps = value_of(user_, kDumpVariable);
    }
    if (temporary.empty() || !made_->starts_with(temporary + "/")) return;
    places_.folder = *made_;
    if (options_.opens_server) environment[kFolderVariable] = *made_;
    if (!options_.nccl_pipe || kept.empty()) return;
    if (places_.pipes.empty()) environment[kPipeVariable] = places_.pipes = *made_ + "/nccl_";
    if (places_.dumps.empty())
        environment[kDumpVariable] = places_.dumps = kept + "/nccl_trace_rank_";
}

void FlightRecorders::ask(Generation generation, const std::vector<int>& ranks, Done done) {
    const bool nothing =
        places_.pipes.empty() && !(options_.opens_server && !places_.folder.empty());
    if (nothing || std::exchange(asks_, true)) return done({});
    const auto round =
        std::make_shared<Round>(Round{options_, places_, generation, ranks, {}, {}, false});
    // What comes later still belongs to the thread.
    const auto recorded = std::make_shared<std::vector<rendezvous::RecordedCalls>>();
    asking_.post_within(
        kServersAnswered, [round] { round->ask_servers(); },
        [this, round, recorded, alive = std::weak_ptr(alive_)](bool in_time) {
            if (!alive.lock() || !in_time) return;
            if (options_.opens_server && !round->answered && say_)
                std::exchange(say_, {})(
                    "--flight-recorder: no worker answers what it has recorded. PyTorch may be too "
                    "old for it, the program may not have imported torch.distributed, or Python's "
                    "-E, -I or -S keep ddprun from opening it");
            *recorded = std::move(round->recorded);
        });
    asking_.post_within(
        kAnswered, [round] { round->ask_nccl(); },
        [recorded, done = std::move(done), alive = std::weak_ptr(alive_)](bool) {
            if (alive.lock()) done(std::move(*recorded));
        });
    // After the answer: the file system may hang, and the texts are here.
    asking_.post([round] { round->keep(); },
                 [this, alive = std::weak_ptr(alive_)] {
                     if (alive.lock()) asks_ = false;
                 });
}

void FlightRecorders::close() { asking_.let_go(); }

}  // namespace ddprun::agent
