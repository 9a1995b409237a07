// Makes the consoles for the files of a generation and decides each stream's route.
#include "agent/output/generation_output.h"

#include <utility>

#include "agent/output/attempt_names.h"
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
                                   const Consoles& consoles, AttemptFiles files, Console::Tell tell)
    : loop_(loop), plan_(plan), consoles_(consoles), files_(std::move(files)) {
    // Reports each kind of error once for all files of the generation: if the disk is full, every
    // file fails.
    tell_ = [tell = std::move(tell),
             told = std::make_shared<std::set<ErrorCode>>()](const Error& error) {
        if (told->insert(error.code()).second) tell(error);
    };
    for (int i : {0, 1})
        if (files_.filtered[i])
            filtered_[i] = file(std::move(files_.filtered[i]), filtered_file(files_.folder, i));
}

std::unique_ptr<Console> GenerationOutput::file(UniqueFd fd, const std::string& name) {
    return std::make_unique<Console>(
        loop_, consoles_.files, std::move(fd), name, tell_,
        Console::Options{.limit = kFileLimit, .patience = kFilePatience});
}

std::string GenerationOutput::folder(int index) const {
    const auto i = static_cast<std::size_t>(index);
    return i < files_.workers.size() ? files_.workers[i].folder : std::string();
}

// Combines the plan (what the user wants) with the files that could be opened.
StreamRoute GenerationOutput::route(int index, int local_rank, int rank, int stream) {
    const int i = index_of(stream);
    StreamRoute route;
    if (!folder(index).empty()) {
        UniqueFd& fd = files_.workers[static_cast<std::size_t>(index)].streams[i];
        if (fd) route.file = file(std::move(fd), folder(index) + "/" + kStreamFiles[i]);
    }
    const StreamPlan plan = plan_stream(plan_, index, stream, route.file != nullptr);
    if (plan.console) route.console = stream == kStdout ? &consoles_.out : &consoles_.err;
    if (plan.prefix) route.prefix = plan_.prefix(local_rank, rank);
    if (plan.filtered && filtered_[i]) {
        route.filtered = filtered_[i].get();
        route.needles = plan_.filters[static_cast<std::size_t>(i)];
        route.filtered_prefix = plan_.prefix(local_rank, rank);
    }
    route.cut = [tell = tell_, rank] {
        tell(Error(ErrorCode::malformed, "rank " + std::to_string(rank) +
                                             " has printed a line longer than " +
                                             std::to_string(PrefixedLines::kLongest >> 20) +
                                             " MiB, and others could not wait for its end: it is "
                                             "cut to pieces (files have it whole)"));
    };
    return route;
}

}  // namespace ddprun::agent
