// Asks the flight recorders of this node's workers.
#include "agent/recorder/flight_recorders.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

#include "agent/recorder/flight_dump.h"
#include "agent/recorder/nccl_pipes.h"
#include "agent/recorder/recorder_sockets.h"
#include "base/system/boot_clock.h"
#include "base/system/careful_open.h"

namespace ddprun::agent {
namespace {

constexpr auto kAnswered = std::chrono::seconds{3};
// A recorder answers within milliseconds. NCCL's thread looks once a second.
constexpr auto kServerPatience = std::chrono::milliseconds{1500};
constexpr auto kDumpPatience = std::chrono::milliseconds{2500};

constexpr const char* kFolderVariable = "DDPRUN_FLIGHT_RECORDER";
constexpr const char* kPipeVariable = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE";
constexpr const char* kDumpVariable = "TORCH_NCCL_DEBUG_INFO_TEMP_FILE";
constexpr const char* kNewDumpVariable = "TORCH_FR_DUMP_TEMP_FILE";  // it wins over the other

// The recorders of a worker: Gloo's, that of PyTorch's older NCCL and that of the newer one. Each is
// asked, since an answer without calls costs nothing.
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

    void run() {
        const std::vector<AwaitedDump> dumps = ask_nccl();
        const Time asked = boot_now();
        if (options.opens_server) ask_servers();
        await_dumps(dumps, kDumpPatience - (boot_now() - asked));
    }

    std::vector<AwaitedDump> ask_nccl() const {
        std::vector<AwaitedDump> dumps;
        if (places.pipes.empty() || places.dumps.empty()) return dumps;
        for (const int rank : ranks) {
            const std::string dump = places.dumps + std::to_string(rank);
            const std::int64_t since = changed_at(dump);
            if (ask_by_pipe(places.pipes + std::to_string(rank) + ".pipe"))
                dumps.push_back({dump, since});
        }
        return dumps;
    }

    void ask_servers() {
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

// PyTorch ends the worker where it cannot make its pipe, so the folder must be there, on a file
// system of this host.
FlightRecorders::Variables FlightRecorders::begin(const std::string& temporary,
                                                  const std::string& kept) {
    Variables set;
    places_ = {{}, kept, {}, {}};
    if (options_.nccl_pipe) {
        places_.pipes = value_of(user_, kPipeVariable);
        places_.dumps = value_of(user_, kNewDumpVariable);
        if (places_.dumps.empty()) places_.dumps = value_of(user_, kDumpVariable);
    }
    const std::string folder = temporary + "/recorders";
    const bool needed = options_.opens_server || (options_.nccl_pipe && !kept.empty());
    if (!needed || temporary.empty() || (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST))
        return set;
    places_.folder = folder;
    if (options_.opens_server) set[kFolderVariable] = folder;
    if (!options_.nccl_pipe || kept.empty()) return set;
    if (places_.pipes.empty()) set[kPipeVariable] = places_.pipes = folder + "/nccl_";
    if (places_.dumps.empty()) set[kDumpVariable] = places_.dumps = kept + "/nccl_trace_rank_";
    return set;
}

void FlightRecorders::ask(Generation generation, const std::vector<int>& ranks, Done done) {
    const bool nothing =
        places_.pipes.empty() && !(options_.opens_server && !places_.folder.empty());
    if (nothing || std::exchange(asks_, true)) return done({});
    const auto round =
        std::make_shared<Round>(Round{options_, places_, generation, ranks, {}, {}, false});
    asking_.post_within(
        kAnswered, [round] { round->run(); },
        [this, round, done = std::move(done), alive = std::weak_ptr(alive_)](bool in_time) {
            if (!alive.lock()) return;
            // What comes later still belongs to the thread.
            if (!in_time) return done({});
            if (options_.opens_server && !round->answered && say_)
                std::exchange(say_, {})(
                    "--flight-recorder: no worker answers what it has recorded. PyTorch may be too "
                    "old for it, the program may not have imported torch.distributed, or Python's "
                    "-E, -I or -S keep ddprun from opening it");
            done(std::move(round->recorded));
        });
    // After the answer: the file system may hang, and the texts are here.
    asking_.post([round] { round->keep(); },
                 [this, alive = std::weak_ptr(alive_)] {
                     if (alive.lock()) asks_ = false;
                 });
}

void FlightRecorders::close() { asking_.let_go(); }

}  // namespace ddprun::agent
