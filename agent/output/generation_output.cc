// Makes the consoles for the files of a generation and decides each stream's route.
#include "agent/output/generation_output.h"

#include <utility>

#include "agent/output/attempt_names.h"
#include "agent/output/flood_watch.h"
#include "agent/output/prefixed_lines.h"

namespace ddprun::agent {
namespace {

// The limit for each file. With many workers and a file system that hangs, the memory must stay
// bounded.
constexpr std::size_t kFileLimit = std::size_t{8} << 20;
constexpr auto kFilePatience = std::chrono::seconds{5};

int index_of(int stream) { return stream == kStdout ? 0 : 1; }

}  // namespace

GenerationOutput::GenerationOutput(boost::asio::io_context& loop, const OutputPlan& plan,
                                   const Consoles& consoles, OutputPlan::RankNames names,
                                   AttemptFiles files, std::shared_ptr<TurnBudget> turns,
                                   Console::Tell tell)
    : loop_(loop),
      plan_(plan),
      consoles_(consoles),
      files_(std::move(files)),
      turns_(std::move(turns)),
      tell_each_(std::move(tell)) {
    // Reports each kind of error once for all files of the generation: if the disk is full, every
    // file fails.
    tell_ = [tell = tell_each_, late = consoles.late,
             told = std::make_shared<std::set<ErrorCode>>()](const Error& error) {
        late->told(error.code());
        if (told->insert(error.code()).second) tell(error);
    };
    collapse(names);
    for (int i : {0, 1})
        if (files_.filtered[i])
            filtered_[i] = file(std::move(files_.filtered[i]), filtered_file(files_.folder, i));
}

void GenerationOutput::collapse(const OutputPlan::RankNames& all) {
    if (!plan_.collapse || all.ranks.size() < 2) return;
    for (Console* console : {&consoles_.out, &consoles_.err})
        console->collapse(all.ranks, [plan = plan_, all](const std::vector<std::size_t>& indexes) {
            OutputPlan::RankNames some;
            for (const std::size_t i : indexes) {
                some.local_ranks.push_back(all.local_ranks[i]);
                some.ranks.push_back(all.ranks[i]);
            }
            return plan.prefix(some, all);
        });
}

std::unique_ptr<Console> GenerationOutput::file(UniqueFd fd, const std::string& name) {
    return std::make_unique<Console>(
        loop_, consoles_.files, std::move(fd), name, tell_,
        Console::Options{.limit = kFileLimit, .patience = kFilePatience, .late = consoles_.late});
}

std::string GenerationOutput::folder(int index) const {
    const auto i = static_cast<std::size_t>(index);
    return i < files_.workers.size() ? files_.workers[i].folder : std::string();
}

// Why it is cut: nobody can wait for a very long line, or many long lines fill the memory together.
void GenerationOutput::tell_cut(int rank, std::size_t bytes) const {
    const bool long_alone = bytes >= PrefixedLines::kLongest;
    const std::string size = bytes >> 20 != 0 ? std::to_string(bytes >> 20) + " MiB"
                                              : std::to_string(bytes >> 10) + " KiB";
    tell_(Error(ErrorCode::malformed,
                "rank " + std::to_string(rank) + " has printed a line longer than " + size +
                    (long_alone ? ", and others could not wait for its end"
                                : ", and the unfinished lines of this node fill their " +
                                      std::to_string(lines_->limit >> 20) + " MiB") +
                    ": it is cut to pieces (files have it whole)"));
}

// Combines the plan (what the user wants) with the files that could be opened.
StreamRoute GenerationOutput::route(int index, int local_rank, int rank, int stream) {
    const int i = index_of(stream);
    StreamRoute route;
    route.index = static_cast<std::size_t>(index);
    if (!folder(index).empty()) {
        UniqueFd& fd = files_.workers[static_cast<std::size_t>(index)].streams[i];
        if (fd) route.file = file(std::move(fd), folder(index) + "/" + kStreamFiles[i]);
    }
    const StreamPlan plan = plan_stream(plan_, index, stream, route.file != nullptr);
    if (plan.console) route.console = stream == kStdout ? &consoles_.out : &consoles_.err;
    if (plan.prefix) route.prefix = plan_.prefix(local_rank, rank);
    // What a file gets does not depend on a terminal.
    if (route.console != nullptr && !route.file && !plan.filtered)
        route.window = route.console->window();
    if (plan.filtered && filtered_[i]) {
        route.filtered = filtered_[i].get();
        route.needles = plan_.filters[static_cast<std::size_t>(i)];
        route.filtered_prefix = plan_.prefix(local_rank, rank);
    }
    route.cut = [this, rank](std::size_t bytes) { tell_cut(rank, bytes); };
    route.flood = [this, rank, stream](std::size_t bytes) {
        tell_each_(Error(ErrorCode::malformed,
                         "rank " + std::to_string(rank) + " floods its " +
                             (stream == kStdout ? "stdout" : "stderr") + ": " +
                             std::to_string(bytes >> 20) + " MiB in " + to_text(FloodWatch::kLong) +
                             " without a pause; what the others print comes later for it"));
    };
    route.printed = consoles_.printed;
    route.lines = lines_;
    route.turns = turns_;
    return route;
}

}  // namespace ddprun::agent
