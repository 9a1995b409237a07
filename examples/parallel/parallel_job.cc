// Meeting, snapshots, stops and reports.
#include "examples/parallel/parallel_job.h"

#include <signal.h>

#include <cmath>
#include <cstdio>

#include "base/count_text.h"
#include "examples/needs.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/snapshot/load/load_into.h"
#include "trainer/snapshot/load/load_slices.h"
#include "trainer/training/agreement.h"
#include "trainer/worker/error_file.h"
#include "trainer/worker/or_throw.h"

namespace example {

using namespace ddprun;
using namespace ddprun::trainer;

namespace {

Context context_for(const ParallelOptions& options) {
    auto context = or_throw(Context::from_environment());
    or_throw(check_crash_rank(options, context));
    return context;
}

// The model lies in the host's memory.
GroupOptions group_options(const ParallelOptions& from) {
    GroupOptions options;
    options.backend = Backend::gloo;
    options.checked_launches = from.checked_launches;
    return options;
}

}  // namespace

ParallelJob::ParallelJob(const ParallelOptions& options, std::string program, StopRequest stop)
    : options_(options),
      program_(std::move(program)),
      stop_(std::move(stop)),
      context_(context_for(options)),
      store_(or_throw(connect_store(context_))),
      world_(or_throw(make_process_group(context_, *store_, group_options(options)))),
      grid_(or_throw(Grid::make(*world_, options.parts))),
      request_(SnapshotRequest::from_environment()),
      progress_(Progress::from_environment()) {
    if (options.batch % grid_.replicas)
        throw Failure(usage_error("--batch " + std::to_string(options.batch) +
                                  " cannot be cut for " + std::to_string(grid_.replicas) +
                                  " replicas; take a multiple"));
    if (context_.is_first())
        std::printf("%s of the model, %s, generation %lld\n",
                    count_text(grid_.parts, "part").c_str(),
                    count_text(grid_.replicas, "replica").c_str(),
                    static_cast<long long>(context_.generation.value));
}

void ParallelJob::resume(std::vector<Tensor> slices) {
    if (options_.snapshot_dir.empty()) return;
    slices_ = std::move(slices);
    auto folder = or_throw(SnapshotFolder::open(
        context_, options_.snapshot_dir, 3, [this](const std::string& warning) {
            std::fprintf(stderr, "%s: warning: %s\n", program_.c_str(), warning.c_str());
        }));
    // A stage of a pipeline does not have the blocks of the others.
    const auto loaded = or_throw(
        resume_into(context_, *store_, folder, slices_, world_->timeout(), {Rest::ignored}));
    WriterOptions options;
    options.goes_on_unsaved = true;
    writer_ = or_throw(SnapshotWriter::make(context_, *store_, std::move(folder), options));
    writer_->prepare(views_of(slices_));
    if (!loaded) return;
    step_ = saved_ = loaded->manifest.name.step;
    if (context_.is_first())
        std::printf("resumed from %s at step %lld\n", loaded->manifest.name.stem().c_str(),
                    static_cast<long long>(step_));
}

bool ParallelJob::goes_on() const {
    if (stopped_ || step_ >= options_.steps) return false;
    // Only in the first generation, or the job would never end.
    if (step_ == options_.crash_at_step && context_.rank.value == options_.crash_rank &&
        context_.generation.value == 0)
        (void)raise(SIGKILL);
    return true;
}

std::int64_t ParallelJob::first_sample() const {
    return step_ * options_.batch + grid_.replica * samples();
}

void ParallelJob::step_done(std::optional<double> loss) {
    ++step_;
    const auto asked =
        or_throw(asked_of_any(*world_, {stop_.asked(), writer_ ? request_.asked() : 0}));
    if (asked.snapshot > 0) request_.begun(asked.snapshot);
    stopped_ = asked.stop;
    const bool last = stopped_ || step_ == options_.steps;
    const bool saves =
        writer_ && (step_ % options_.snapshot_every == 0 || asked.snapshot > 0 || last);
    const bool tells = step_ % 10 == 0 || last;
    if (saves || tells) look_at(loss, tells);
    if (saves) save();
    const auto newest = writer_ ? writer_->newest() : SnapshotWriter::Newest{};
    progress_.report(step_, newest.step, newest.duration.count(),
                     writer_ ? writer_->held().count() : -1);
}

// All ranks have the same mean, so all of them end here, before a snapshot of such numbers.
void ParallelJob::look_at(std::optional<double> loss, bool tells) {
    WeightedMean mine;
    if (loss) mine.add(*loss);
    const double mean = or_throw(mean_over_ranks(*world_, mine)).mean().value_or(0);
    if (!std::isfinite(mean))
        throw Failure(Error(ErrorCode::malformed, "the loss at step " + std::to_string(step_) +
                                                      " is not a finite number; try a lower --lr"));
    if (tells && context_.is_first())
        std::printf("step=%lld loss=%.9g\n", static_cast<long long>(step_), mean);
}

void ParallelJob::save() {
    if (saved_ == step_) return;
    or_throw(writer_->save(step_, views_of(slices_), {}));
    saved_ = step_;
}

int ParallelJob::end() {
    if (writer_) or_throw(writer_->wait());
    if (stopped_ && context_.is_first())
        std::printf("stopped after step %lld\n", static_cast<long long>(step_));
    // 143, as a shell reports a process that SIGTERM ended: work is left.
    return stopped_ ? 128 + SIGTERM : 0;
}

int run_parallel(int argc, char** argv, const std::string& program, const char* what,
                 int (*train)(const ParallelOptions&, StopRequest)) try {
    const auto options = or_throw(parse_parallel_options({argv + 1, argv + argc}, program));
    if (options.help) return std::fputs(what, stdout) < 0 || std::fputs(kParallelHelp, stdout) < 0;
    // First of all: from here on SIGTERM is a request and does not end the process.
    return train(options, StopRequest::from_environment());
} catch (const Failure& failure) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), failure.what());
    return report_error(failure.error());
}

}  // namespace example
