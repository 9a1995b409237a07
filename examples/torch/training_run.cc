// The steps around a training step.
#include "examples/torch/training_run.h"

#include <malloc.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "examples/output_files.h"
#include "trainer/gpu/gpu.h"
#include "trainer/snapshot/durable_file.h"
#include "trainer/torch/torch_group.h"
#include "trainer/training/agreement.h"
#include "trainer/worker/error_file.h"

namespace example {

using namespace ddprun;
using namespace ddprun::trainer;

namespace {

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// A mean that all ranks have, so all of them end here. No snapshot is written after it.
double finite(const WeightedMean& mean, const char* of, std::int64_t step) {
    const double value = mean.mean().value_or(0);
    if (!std::isfinite(value))
        throw ModuleError({ErrorCode::malformed, std::string(of) + " at step " +
                                                     std::to_string(step) +
                                                     " is not a finite number; try a lower --lr"});
    return value;
}

double seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
}

Context context_for(const RunOptions& options) {
    auto context = or_throw(Context::from_environment());
    or_throw(check_crash_rank(options, context));
    or_throw(check_outputs(context, options.save, options.metrics));
    return context;
}

// A line on standard output, at once: it may be a pipe to the launcher, which would see it only at
// the end.
void print(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

// A step frees what it allocated. glibc would give most of that back to the kernel, and each page
// of it be mapped and cleared again in the next step: up to a tenth of a step's time. With these
// limits the process keeps it. Python's processes have a fuller heap, of which glibc gives back
// less.
void keep_freed_memory() {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the greatest that mallopt(3) allows
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

// Whether the settings with which a snapshot was written are those of this training. An option is
// told with its values; the others are checksums and the like.
Result<void> check_words(const Metadata& saved, const Metadata& words, const std::string& program) {
    for (const auto& [key, value] : words) {
        const auto it = saved.find(key);
        if (it == saved.end())
            return usage_error(program + " has not written it: it lacks \"" + key + "\"");
        if (it->second == value) continue;
        const bool option = key.starts_with("--");
        return usage_error("it was written with " +
                           (option ? key + " " + it->second + ", not " + value : "another " + key));
    }
    return {};
}

std::int64_t number_in(const Metadata& words, const char* key) {
    const auto it = words.find(key);
    // -1: the sampler refuses it.
    return it == words.end() ? -1 : std::atoll(it->second.c_str());
}

}  // namespace

TrainingRun::TrainingRun(const RunOptions& options, const SamplerOptions& sampler, StopRequest stop)
    : options_(options),
      context_(context_for(options)),
      size_(sampler.samples),
      stop_(std::move(stop)),
      store_(or_throw(connect_store(context_, std::chrono::seconds(options.timeout_s)))),
      group_(or_throw(make_torch_group(
          context_, *store_, {options.backend, std::chrono::seconds(options.timeout_s), {}}))),
      sampler_(or_throw(DistributedSampler::make(sampler, rank(), world()))) {}

void TrainingRun::begin(torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                        const Metadata& words, Validate validate) {
    module_ = &module;
    optimizer_ = &optimizer;
    words_ = words;
    validate_ = std::move(validate);
    if (!options_.snapshot_dir.empty()) resume(words);
    told_at_ = seconds_now();
    line_clock_.begin(told_at_);
    report();
}

// All ranks load the same snapshot, or none. Another world size does not matter.
void TrainingRun::resume(const Metadata& words) {
    auto folder = or_throw(SnapshotFolder::open(
        context_, options_.snapshot_dir, static_cast<std::size_t>(options_.snapshot_keep),
        [this](const std::string& warning) {
            std::fprintf(stderr, "%s: warning: %s\n", options_.program.c_str(), warning.c_str());
        }));
    auto snapshot = or_throw(ddprun::trainer::resume(context_, *store_, folder, group_->timeout()));
    WriterOptions options;
    options.goes_on_unsaved = true;
    // Not beside the copies: libtorch uses memory again in the order of its stream, which must
    // therefore come behind them.
    if (group_->memory() == Memory::gpu) options.gpu = GpuTensors();
    writer_ = or_throw(SnapshotWriter::make(context_, *store_, std::move(folder), options));
    if (!snapshot) return;
    const auto& manifest = snapshot->manifest;
    const auto check = [&](const Result<void>& done) {
        if (!done)
            throw ModuleError(usage_error("snapshot " + manifest.name.stem() + ": " +
                                          done.error().sentence() +
                                          "; use another --snapshot-dir"));
    };
    check(check_words(manifest.metadata, words, options_.program));
    check(restore(snapshot->content, *module_, optimizer_));
    or_throw(sampler_.resume(
        {number_in(manifest.metadata, "epoch"), number_in(manifest.metadata, "consumed")}));
    step_ = saved_ = manifest.name.step;
    if (sampler_.position().consumed > 0 && sampler_.left() > 0) figures_.since = step_;
    if (context_.is_first())
        print("resumed from " + manifest.name.stem() + " at step " + std::to_string(step_));
}

bool TrainingRun::goes_on() {
    if (sampler_.left() == 0) sampler_.next_epoch();
    crash_if_asked();
    return !stopped_ && (options_.steps < 0 || step_ < options_.steps) &&
           (options_.epochs < 0 || sampler_.position().epoch < options_.epochs);
}

std::vector<std::int64_t> TrainingRun::next(std::int64_t batch) { return sampler_.next(batch); }

int TrainingRun::gpu() const {
    return group_->memory() == Memory::gpu ? context_.gpu_index(gpu_count()) : -1;
}

double TrainingRun::epochs() const {
    const auto at = sampler_.position();
    return static_cast<double>(at.epoch) +
           static_cast<double>(at.consumed) / static_cast<double>(size_);
}

// What follows from numbers that are equal on all ranks: so all ranks make the same calls.
void TrainingRun::end_step(double loss, double samples, const ReduceTimes& times) {
    ++step_;
    for (auto* mean : {&loss_, &recent_}) mean->add(loss, samples);
    figures_.communication += seconds(times.communication);
    figures_.waited += seconds(times.waited);
    // Without a folder for snapshots, a request for one stays open.
    const Asked asked =
        or_throw(asked_of_any(*group_, {stop_.asked(), writer_ ? snapshot_.asked() : 0}));
    stopped_ = asked.stop;
    const bool over = sampler_.left() == 0;
    const bool last = stopped_ || step_ == options_.steps ||
                      (over && sampler_.position().epoch + 1 == options_.epochs);
    const bool saves =
        writer_ && (last || asked.snapshot > 0 || step_ % options_.snapshot_every == 0);
    if (last || over || saves) prepare_();
    if (last || step_ % options_.log_every == 0) log_step();
    if (last || over) tell_figures();
    if (asked.snapshot > 0) snapshot_.begun(asked.snapshot);
    if (saves) {
        (void)finite(or_throw(mean_over_ranks(*group_, recent_)), "the loss", step_);
        save();
    }
    // The last snapshot must be on disk before the process ends.
    if (writer_ && last) or_throw(writer_->wait());
    report();
}

Metadata TrainingRun::words_now() const {
    Metadata words = words_;
    words["epoch"] = std::to_string(sampler_.position().epoch);
    words["consumed"] = std::to_string(sampler_.position().consumed);
    return words;
}

// save() only copies, from a GPU even after it has returned; a thread writes the files, each rank
// its share.
void TrainingRun::save() {
    being_saved_.push_back(or_throw(state_of(*module_, optimizer_)));
    or_throw(writer_->save(step_, being_saved_.back().tensors, words_now()));
    // The one before these two has been waited for.
    if (being_saved_.size() > 2) being_saved_.pop_front();
}

// A line of progress: the mean loss over all ranks since the last line.
void TrainingRun::log_step() {
    const auto mean = or_throw(mean_over_ranks(*group_, recent_));
    const double loss = finite(mean, "the loss", step_);
    recent_ = {};
    const double trained = line_clock_.lap(seconds_now());
    char line[96];
    std::snprintf(line, sizeof line, "step=%lld loss=%.9f samples/s=%.0f",
                  static_cast<long long>(step_), loss, mean.weight() / trained);
    if (context_.is_first()) print(line);
}

double TrainingRun::validation() {
    return finite(or_throw(mean_over_ranks(*group_, validate_())), "the validation", step_);
}

// The figures of all ranks since the last call. Times are those of the slowest rank, because the
// others wait for it.
void TrainingRun::tell_figures() {
    const double begun = seconds_now();
    const auto trained = or_throw(mean_over_ranks(*group_, loss_));
    double slowest[] = {figures_.communication, figures_.waited, begun - told_at_};
    or_throw(group_->all_reduce_values(slowest, ReduceOp::max));
    figures_.validation = validation();
    figures_.epoch = sampler_.position().epoch;
    figures_.step = step_;
    figures_.world = world();
    figures_.loss = finite(trained, "the loss", step_);
    figures_.samples = trained.weight();
    figures_.communication = slowest[0];
    figures_.waited = slowest[1];
    figures_.seconds = slowest[2];
    if (context_.is_first()) {
        print(line_of(figures_));
        add_metrics(options_.program, options_.metrics, json_of(figures_));
    }
    figures_ = {};
    loss_ = {};
    told_at_ = seconds_now();
    line_clock_.leave_out(told_at_ - begun);
}

// Tells the launcher the step and the newest snapshot: our own newest, else the one that was
// loaded.
void TrainingRun::report() {
    const auto newest = writer_ ? writer_->newest() : SnapshotWriter::Newest{};
    const bool own = newest.step >= 0;
    progress_.report(step_, own ? newest.step : saved_, own ? newest.duration.count() : -1,
                     writer_ ? writer_->held().count() : -1);
}

// Only in the first generation, or the job would never end.
void TrainingRun::crash_if_asked() {
    if (context_.generation.value != 0 || step_ != options_.crash_at_step ||
        rank() != options_.crash_rank)
        return;
    // So that it is certain from which snapshot the next generation resumes.
    if (writer_) (void)writer_->wait();
    std::fprintf(stderr, "%s: rank %d crashes on purpose before step %lld\n",
                 options_.program.c_str(), rank(), static_cast<long long>(step_));
    (void)raise(SIGKILL);
}

int TrainingRun::finish(const std::string& result) {
    if (stopped_) return 128 + SIGTERM;
    const ModuleState state = or_throw(host_state_of(*module_));
    std::string checksums;
    for (const auto& tensor : state.tensors) checksums += checksum_of(tensor.data);
    const auto number = hash_of(std::as_bytes(std::span(checksums)));
    // 52 bits of it, which a double holds exactly.
    const auto all = or_throw(values_of_ranks(*group_, static_cast<double>(number >> 12)));
    for (int other = 0; other < world(); ++other)
        if (all[static_cast<std::size_t>(other)] != all.front())
            throw ModuleError(Error(
                ErrorCode::refused,
                "the parameters of rank " + std::to_string(other) + " are not those of rank 0"));
    if (context_.is_first())
        print(result + " checksum=" + checksum_of(std::as_bytes(std::span(checksums))));
    // No rank leaves while another one still works.
    or_throw(group_->barrier());
    return 0;
}

// Whatever is wrong, the user has to name another file.
void load_file(const std::string& path, torch::nn::Module& module) {
    const auto pages = read_pages(path);
    if (!pages) throw ModuleError(usage_error(pages.error().sentence()));
    const auto content = parse_safetensors(pages->bytes());
    const auto done = content ? restore(*content, module) : Result<void>(content.error());
    if (!done)
        throw ModuleError(usage_error("the network " + path + ": " + done.error().sentence()));
}

void save_file(const std::string& path, const torch::nn::Module& module, Metadata words) {
    const ModuleState state = or_throw(host_state_of(module));
    words["format"] = "pt";  // some of Python's readers want it
    const std::string head = or_throw(safetensors_head(state.tensors, words));
    std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(head))};
    for (std::size_t i : data_order(state.tensors)) pieces.push_back(state.tensors[i].data);
    or_throw(write_durably(path, pieces));
}

int run_program(const std::string& program, const std::function<int()>& body) {
    keep_freed_memory();
    Error error;
    try {
        return body();
    } catch (const ModuleError& problem) {
        error = problem.error;
    } catch (const std::exception& problem) {
        // Of libtorch: the first line, the rest is a stack.
        const std::string text = problem.what();
        error = Error(ErrorCode::internal, "libtorch: " + text.substr(0, text.find('\n')));
    }
    std::fprintf(stderr, "%s: %s\n", program.c_str(), error.sentence().c_str());
    return report_error(error);
}

}  // namespace example
