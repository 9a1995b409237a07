// The steps around a training step.
#include "examples/torch/module_run.h"

#include <malloc.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "examples/output_files.h"
#include "trainer/gpu/gpu.h"
#include "trainer/snapshot/format/durable_file.h"
#include "trainer/torch/torch_group.h"
#include "trainer/training/agreement.h"
#include "trainer/worker/error_file.h"

namespace example {

using namespace ddprun;
using namespace ddprun::trainer;

namespace {

Context context_for(const RunOptions& options) {
    auto context = or_throw(Context::from_environment());
    or_throw(check_crash_rank(options, context));
    or_throw(check_outputs(context, options.save, options.metrics));
    return context;
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

ModulePlace place_for(const RunOptions& options) {
    Context context = context_for(options);
    const auto timeout = std::chrono::seconds(options.timeout_s);
    auto store = or_throw(connect_store(context, timeout));
    auto group = or_throw(make_torch_group(context, *store, {options.backend, timeout, {}}));
    return {options, std::move(context), std::move(store), std::move(group)};
}

}  // namespace

ModuleRun::ModuleRun(const RunOptions& options, const SamplerOptions& sampler, StopRequest stop)
    : ModulePlace(place_for(options)),
      TrainingRun(ModulePlace::options, context, *store, *ModulePlace::group, std::move(stop)),
      size_(sampler.samples),
      sampler_(or_throw(DistributedSampler::make(sampler, rank(), world()))) {
    digits_ = 9;
}

void ModuleRun::begin(torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                      const Metadata& words, Validate validate) {
    module_ = &module;
    optimizer_ = &optimizer;
    words_ = words;
    validate_ = std::move(validate);
    if (!run_options_.snapshot_dir.empty()) resume(words);
    begin_steps();
}

// All ranks load the same snapshot, or none. Another world size does not matter.
void ModuleRun::resume(const Metadata& words) {
    auto folder = open_folder();
    auto snapshot = or_throw(ddprun::trainer::resume(context_, store_, folder, group_.timeout()));
    // Not beside the copies: libtorch uses memory again in the order of its stream, which must
    // therefore come behind them.
    write_to(std::move(folder), GpuTensors());
    if (!snapshot) return;
    const auto& manifest = snapshot->manifest;
    const auto check = [&](const Result<void>& done) {
        if (!done)
            throw Failure(usage_error("snapshot " + manifest.name.stem() + ": " +
                                      done.error().sentence() + "; use another --snapshot-dir"));
    };
    check(check_words(manifest.metadata, words, run_options_.program));
    check(restore(snapshot->content, *module_, optimizer_));
    or_throw(sampler_.resume(
        {number_in(manifest.metadata, "epoch"), number_in(manifest.metadata, "consumed")}));
    resumed_from(manifest.name);
}

bool ModuleRun::goes_on() {
    if (!TrainingRun::goes_on()) return false;
    if (sampler_.left() == 0) sampler_.next_epoch();
    return true;
}

int ModuleRun::gpu() const {
    return group_.memory() == Memory::gpu ? context_.gpu_index(gpu_count()) : -1;
}

double ModuleRun::epochs() const {
    const auto at = sampler_.position();
    return static_cast<double>(at.epoch) +
           static_cast<double>(at.consumed) / static_cast<double>(size_);
}

Metadata ModuleRun::words_now() const {
    Metadata words = words_;
    words["epoch"] = std::to_string(sampler_.position().epoch);
    words["consumed"] = std::to_string(sampler_.position().consumed);
    return words;
}

// save() only copies, from a GPU even after it has returned; a thread writes the files, each rank
// its share.
void ModuleRun::save() {
    (void)checked(or_throw(mean_over_ranks(group_, recent_)), "the loss");
    being_saved_.push_back(or_throw(state_of(*module_, optimizer_)));
    or_throw(writer_->save(steps(), being_saved_.back().tensors, words_now()));
    // The one before these two has been waited for.
    if (being_saved_.size() > 2) being_saved_.pop_front();
}

// All ranks have this mean, so all of them end here. No snapshot is written after it.
double ModuleRun::checked(const WeightedMean& mean, const char* of) const {
    const double value = TrainingRun::checked(mean, of);
    if (!std::isfinite(value))
        throw Failure({ErrorCode::malformed, std::string(of) + " at step " +
                                                 std::to_string(steps()) +
                                                 " is not a finite number; try a lower --lr"});
    return value;
}

std::optional<double> ModuleRun::validate() {
    return checked(or_throw(mean_over_ranks(group_, validate_())), "the validation");
}

int ModuleRun::finish(const std::string& result) {
    if (stopped()) return 128 + SIGTERM;
    const ModuleState state = or_throw(host_state_of(*module_));
    std::string checksums;
    for (const auto& tensor : state.tensors) checksums += checksum_of(tensor.data);
    const auto number = hash_of(std::as_bytes(std::span(checksums)));
    // 52 bits of it, which a double holds exactly.
    const auto all = or_throw(values_of_ranks(group_, static_cast<double>(number >> 12)));
    for (int other = 0; other < world(); ++other)
        if (all[static_cast<std::size_t>(other)] != all.front())
            throw Failure(Error(
                ErrorCode::refused,
                "the parameters of rank " + std::to_string(other) + " are not those of rank 0"));
    print(result + " checksum=" + checksum_of(std::as_bytes(std::span(checksums))));
    // No rank leaves while another one still works.
    or_throw(group_.barrier());
    return 0;
}

// Whatever is wrong, the user has to name another file.
void load_file(const std::string& path, torch::nn::Module& module) {
    const auto pages = read_pages(path);
    if (!pages) throw Failure(usage_error(pages.error().sentence()));
    const auto content = parse_safetensors(pages->bytes());
    const auto done = content ? restore(*content, module) : Result<void>(content.error());
    if (!done) throw Failure(usage_error("the network " + path + ": " + done.error().sentence()));
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
    } catch (const Failure& failure) {
        error = failure.error();
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
