// tensor_parallel: neighbouring ranks share each layer of the model, and each such row of ranks has
// a share of the batch. On CPUs, over Gloo.
//
// A block needs one all-reduce over the row forward and one backward. The gradients of a block are
// averaged over the columns meanwhile.
#include "examples/parallel/block_stack.h"
#include "examples/parallel/parallel_job.h"
#include "examples/parallel/samples.h"
#include "trainer/worker/or_throw.h"

using namespace ddprun;
using namespace ddprun::trainer;
using namespace example;

namespace {

int train(const ParallelOptions& options, StopRequest stop) {
    ParallelJob job(options, "tensor_parallel", std::move(stop));
    const Grid& grid = job.grid();
    const auto parts = static_cast<std::size_t>(grid.parts);
    const auto part = static_cast<std::size_t>(grid.part);
    if (kHidden % parts)
        throw Failure(usage_error("--parts " + std::to_string(parts) + " does not divide the " +
                                  std::to_string(kHidden) + " hidden units of a block"));
    BlockStack model({0, kBlocks, kHidden / parts * part, kHidden / parts * (part + 1)});
    job.resume(model.slices());
    // Small buckets: about one for each block, so that they travel while backward goes on.
    ReducerOptions buckets;
    buckets.first_bucket_bytes = buckets.bucket_bytes = 128 << 10;
    const auto reducer = or_throw(GradientReducer::make(*grid.column, model.parameters(), buckets));
    const Sum sum = [&](std::span<float> values) {
        or_throw(grid.row->all_reduce(buffer_of(values)));
    };
    while (job.goes_on()) {
        const auto x = inputs_of(job.first_sample(), job.samples());
        or_throw(reducer->zero());
        const Pass pass = model.forward(x, sum);
        double loss = 0;
        (void)model.backward(pass, slope_of(x, pass.output, job.samples(), loss), sum, *reducer);
        or_throw(reducer->finish());
        model.update(*reducer, options.rate);
        job.step_done(loss);
    }
    return job.end();
}

}  // namespace

int main(int argc, char** argv) {
    return run_parallel(argc, argv, "tensor_parallel",
                        "Usage: tensor_parallel [options]     under ddprun or torchrun, or alone\n"
                        "Trains a model whose layers are cut over ranks, with replicas.\n",
                        train);
}
