// pipeline: each rank of a row has some blocks of the model, and the micro-batches of a step pass
// one after the other, in the order 1F1B. The rows are replicas. On CPUs, over Gloo.
//
// At the end rank 0 prints the bubble (the share of time in which stages wait), as it was and as it
// would be if messages took no time, and draws the last step.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "examples/parallel/block_stack.h"
#include "examples/parallel/parallel_job.h"
#include "examples/parallel/pipeline_schedule.h"
#include "examples/parallel/samples.h"
#include "trainer/training/agreement.h"
#include "trainer/worker/or_throw.h"

using namespace ddprun;
using namespace ddprun::trainer;
using namespace example;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// One stage of one replica.
class Stage {
  public:
    Stage(const ParallelOptions& options, ParallelJob& job)
        : job_(job),
          row_(*job.grid().row),
          micro_batches_(options.micro_batches),
          size_(job.samples() / micro_batches_),
          turns_(one_forward_one_backward(row_.rank(), row_.size(), micro_batches_)),
          model_(cut(row_.rank(), row_.size())) {
        if (job.samples() % micro_batches_)
            throw Failure(usage_error("--micro-batches " + std::to_string(micro_batches_) +
                                      " does not divide a replica's share of " +
                                      std::to_string(job.samples()) + " samples"));
        passes_.resize(static_cast<std::size_t>(micro_batches_));
    }

    BlockStack& model() { return model_; }

    // All micro-batches, forward and backward. Returns the loss, on the last stage.
    std::optional<double> step(GradientReducer& reducer) {
        const auto begin = Clock::now();
        double loss = 0;
        timed_.clear();
        std::optional<Turn> before;
        for (const Turn& turn : turns_) {
            move(before, turn);
            // The gradients are complete with the last backward pass; then they may travel.
            std::optional<GradientReducer::NoSync> quiet;
            if (turn != turns_.back()) quiet.emplace(reducer);
            const double from = seconds_since(begin);
            turn.forward ? forward(turn.micro_batch) : backward(turn.micro_batch, reducer, loss);
            timed_.push_back({turn, from, seconds_since(begin)});
            busy_ += timed_.back().end - from;
            before = turn;
        }
        move(before, std::nullopt);
        whole_ += seconds_since(begin);
        return is_last() ? std::optional(loss) : std::nullopt;
    }

    // Rank 0 of the row prints it for all stages. All of them call it.
    void print_bubble() const {
        const auto busy = or_throw(values_of_ranks(row_, busy_));
        const auto whole = or_throw(values_of_ranks(row_, whole_));
        std::vector<std::vector<TimedTurn>> all(busy.size());
        for (std::size_t i = 0; i < timed_.size(); ++i) {
            const auto begins = or_throw(values_of_ranks(row_, timed_[i].begin));
            const auto ends = or_throw(values_of_ranks(row_, timed_[i].end));
            for (int s = 0; s < row_.size(); ++s) {
                const auto at = static_cast<std::size_t>(s);
                all[at].push_back({one_forward_one_backward(s, row_.size(), micro_batches_)[i],
                                   begins[at], ends[at]});
            }
        }
        if (row_.rank() || job_.grid().replica || timed_.empty()) return;
        std::printf("bubble=%.3f ideal=%.3f stages=%d micro_batches=%d\n%s",
                    measured_bubble(busy, *std::max_element(whole.begin(), whole.end())),
                    ideal_bubble(row_.size(), micro_batches_), row_.size(), micro_batches_,
                    draw(all, 100).c_str());
    }

  private:
    static Cut cut(int stage, int stages) {
        const auto s = static_cast<std::size_t>(stage), n = static_cast<std::size_t>(stages);
        return {kBlocks * s / n, kBlocks * (s + 1) / n, 0, kHidden};
    }
    bool is_first() const { return row_.rank() == 0; }
    bool is_last() const { return row_.rank() + 1 == row_.size(); }

    std::vector<float> inputs(int micro_batch) const {
        return inputs_of(job_.first_sample() + micro_batch * size_, size_);
    }

    // out_: what the turn before has made; in_: what the next one needs.
    void move(const std::optional<Turn>& before, const std::optional<Turn>& after) {
        const Move move = move_between(before, after, row_.rank(), row_.size());
        in_.resize(static_cast<std::size_t>(size_) * kWidth);
        const Buffer out = buffer_of(std::span(out_)), in = buffer_of(std::span(in_));
        if (move.to >= 0 && move.from >= 0)
            or_throw(row_.exchange(out, move.to, in, move.from));
        else if (move.to >= 0)
            or_throw(row_.send(out, move.to));
        else if (move.from >= 0)
            or_throw(row_.receive(in, move.from));
    }

    void forward(int micro_batch) {
        auto& pass = passes_[static_cast<std::size_t>(micro_batch)];
        pass = model_.forward(is_first() ? inputs(micro_batch) : std::move(in_), {});
        out_ = pass.output;
    }

    void backward(int micro_batch, GradientReducer& reducer, double& loss) {
        auto& pass = passes_[static_cast<std::size_t>(micro_batch)];
        // The targets are a function of the inputs of the first stage.
        auto slope = is_last() ? slope_of(inputs(micro_batch), pass.output, job_.samples(), loss)
                               : std::move(in_);
        out_ = model_.backward(pass, std::move(slope), {}, reducer);
        pass = {};
    }

    const ParallelJob& job_;
    ProcessGroup& row_;
    const int micro_batches_;
    const std::int64_t size_;  // samples of a micro-batch
    const std::vector<Turn> turns_;
    BlockStack model_;
    std::vector<Pass> passes_;  // of micro-batches between their forward and their backward
    std::vector<float> in_, out_;
    std::vector<TimedTurn> timed_;  // of the last step
    double busy_ = 0, whole_ = 0;   // seconds in turns, and in all, of all steps
};

int train(const ParallelOptions& options, StopRequest stop) {
    ParallelJob job(options, "pipeline", std::move(stop));
    const Grid& grid = job.grid();
    if (grid.parts > static_cast<int>(kBlocks))
        throw Failure(usage_error("--parts " + std::to_string(grid.parts) + ": there are only " +
                                  std::to_string(kBlocks) + " blocks for the stages"));
    Stage stage(options, job);
    job.resume(stage.model().slices());
    const auto reducer = or_throw(GradientReducer::make(*grid.column, stage.model().parameters()));
    while (job.goes_on()) {
        or_throw(reducer->zero());
        const auto loss = stage.step(*reducer);
        or_throw(reducer->finish());
        stage.model().update(*reducer, options.rate);
        job.step_done(loss);
    }
    stage.print_bubble();
    return job.end();
}

}  // namespace

int main(int argc, char** argv) {
    return run_parallel(
        argc, argv, "pipeline",
        "Usage: pipeline [options]     under ddprun or torchrun, or alone\n"
        "Trains a model whose blocks are the stages of a pipeline, with replicas.\n",
        train);
}
