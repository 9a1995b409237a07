#include "examples/training_run.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "examples/output_files.h"
#include "trainer/training/agreement.h"
#include "trainer/worker/or_throw.h"

namespace example {

using ddprun::or_throw;
using namespace ddprun::trainer;

namespace {

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
}

}  // namespace

TrainingRun::TrainingRun(const RunOptions& options, const Context& context, Store& store,
                         ProcessGroup& group, StopRequest stop)
    : run_options_(options),
      context_(context),
      store_(store),
      group_(group),
      stop_(std::move(stop)) {}

SnapshotFolder TrainingRun::open_folder() const {
    return or_throw(SnapshotFolder::open(
        context_, run_options_.snapshot_dir, static_cast<std::size_t>(run_options_.snapshot_keep),
        [program = run_options_.program](const std::string& text) {
            std::fprintf(stderr, "%s: warning: %s\n", program.c_str(), text.c_str());
        }));
}

void TrainingRun::write_to(SnapshotFolder folder, const std::optional<GpuTensors>& gpu) {
    WriterOptions options;
    options.goes_on_unsaved = true;
    if (group_.memory() == Memory::gpu) options.gpu = gpu;
    writer_ = or_throw(SnapshotWriter::make(context_, store_, std::move(folder), options));
}

void TrainingRun::resumed_from(const SnapshotName& name) {
    step_ = saved_ = name.step;
    // The figures of the steps before are lost, so a mean that begins here says so.
    const auto every = run_options_.validate_every;
    if (every ? step_ % every != 0 : position().consumed > 0 && left() > 0) figures_.since = step_;
    print("resumed from " + name.stem() + " at step " + std::to_string(step_));
}

void TrainingRun::begin_steps() {
    told_at_ = seconds_now();
    line_clock_.begin(told_at_);
    report();
}

bool TrainingRun::is_last() const {
    const auto& o = run_options_;
    const auto epoch = position().epoch;
    const bool epochs_over =
        o.epochs >= 0 && (epoch >= o.epochs || (epoch + 1 == o.epochs && left() == 0));
    return epochs_over || (o.steps >= 0 && step_ >= o.steps);
}

bool TrainingRun::goes_on() {
    if (stopped_ || is_last() || ends_early()) return false;
    crash_if_asked();
    return true;
}

// Two means of one loss, because both reports begin anew at different times.
void TrainingRun::count(double loss, double samples) {
    for (auto* mean : {&loss_, &recent_}) mean->add(loss, samples);
}

void TrainingRun::count(const ReduceTimes& times) {
    figures_.communication += seconds(times.communication);
    figures_.waited += seconds(times.waited);
}

void TrainingRun::end_step() {
    ++step_;
    // Without a folder for snapshots, a request for one stays open.
    const auto asked =
        or_throw(asked_of_any(group_, {stop_.asked(), writer_ ? snapshot_.asked() : 0}));
    stopped_ = asked.stop;
    const bool last = stopped_ || is_last();
    const auto every = run_options_.validate_every;
    const bool figures = last || (every ? step_ % every == 0 : left() == 0);
    const bool saves =
        writer_ && (last || asked.snapshot > 0 || step_ % run_options_.snapshot_every == 0);
    if (figures || saves) settle();
    if (last || step_ % run_options_.log_every == 0) log_step();
    if (figures) tell_figures();
    if (asked.snapshot > 0) snapshot_.begun(asked.snapshot);
    // The figures may have ended the training.
    const bool over = last || ends_early();
    if (saves || (writer_ && over)) save();
    // The last snapshot must be on disk before the process ends.
    if (writer_ && over) or_throw(writer_->wait());
    report();
}

double TrainingRun::checked(const WeightedMean& mean, const char*) const {
    return mean.mean().value_or(0);
}

std::string TrainingRun::speed(double samples, double seconds) const {
    char text[48];
    std::snprintf(text, sizeof text, "samples/s=%.0f", samples / seconds);
    return text;
}

// A line of progress: the mean loss over all ranks since the last line.
void TrainingRun::log_step() {
    const auto mean = or_throw(mean_over_ranks(group_, recent_));
    recent_ = {};
    char line[64];
    std::snprintf(line, sizeof line, "step=%lld loss=%.*f ", static_cast<long long>(step_), digits_,
                  checked(mean, "the loss"));
    print(line + speed(mean.weight(), line_clock_.lap(seconds_now())));
}

// The figures of all ranks since the last call. Times are those of the slowest rank, because the
// others wait for it.
void TrainingRun::tell_figures() {
    const double begun = seconds_now();
    const auto trained = or_throw(mean_over_ranks(group_, loss_));
    double slowest[] = {figures_.communication, figures_.waited, begun - told_at_};
    or_throw(group_.all_reduce_values(slowest, ReduceOp::max));
    figures_.validation = validate();
    figures_.epoch = position().epoch;
    figures_.step = step_;
    figures_.world = context_.world_size;
    figures_.loss = checked(trained, "the loss");
    figures_.samples = trained.weight();
    figures_.communication = slowest[0];
    figures_.waited = slowest[1];
    figures_.seconds = slowest[2];
    print(line_of(figures_));
    if (context_.is_first())
        add_metrics(run_options_.program, run_options_.metrics, json_of(figures_));
    figures_ = {};
    loss_ = {};
    told_at_ = seconds_now();
    line_clock_.leave_out(told_at_ - begun);
}

// At once: standard output may be a pipe to the launcher, which would see the line only at the end.
void TrainingRun::print(const std::string& line) const {
    if (!context_.is_first()) return;
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

// Tells the launcher the step and the newest snapshot: our own newest, else the one that was
// loaded.
void TrainingRun::report() {
    const auto newest = writer_ ? writer_->newest() : SnapshotWriter::Newest{};
    const bool own = newest.step >= 0;
    progress_.report(step_, own ? newest.step : saved_, own ? newest.duration.count() : -1,
                     writer_ ? writer_->held().count() : -1);
}

// For tests and demonstrations of a restart. Only in the first generation, or the job would never
// end.
void TrainingRun::crash_if_asked() {
    const auto& o = run_options_;
    if (context_.generation.value != 0 || step_ != o.crash_at_step ||
        context_.rank.value != o.crash_rank)
        return;
    // So that it is certain from which snapshot the next generation resumes.
    if (writer_) (void)writer_->wait();
    std::fprintf(stderr, "%s: rank %d crashes on purpose before step %lld\n", o.program.c_str(),
                 context_.rank.value, static_cast<long long>(step_));
    // _exit(): no destructor runs, as in a real crash.
    if (o.crash_exit >= 0) _exit(o.crash_exit);
    // StopRequest handles SIGTERM; here the signal has to end the process.
    (void)signal(o.crash_signal, SIG_DFL);
    (void)raise(o.crash_signal);
}

}  // namespace example
