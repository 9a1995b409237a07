// mnist: a convolutional network that reads digits, in libtorch, data parallel. examples/python/
// mnist.py is the same program in Python: same seed, same numbers.
//
//   ddprun --standalone --nproc-per-node=2 build/bin/mnist --epochs 3
//
// The strong-scaling exercise: the epochs stay the same, with N workers a step has N times as many
// samples, and there are 1/N as many steps. Then the learning rate has to grow N-fold (linear
// scaling), after a warm-up. --reference-batch 0 leaves the rate as it is.
#include <torch/torch.h>

#include <cstdio>

#include "examples/torch/digits.h"
#include "examples/torch/module_run.h"
#include "trainer/torch/data_parallel_module.h"
#include "trainer/training/agreement.h"
#include "trainer/training/schedule.h"

using namespace ddprun;
using namespace ddprun::trainer;
using namespace example;

namespace {

constexpr char kHelp[] = R"(mnist: trains a network on images of digits

  --data FOLDER          MNIST's four IDX files, unpacked, or torchvision's folder with MNIST/raw;
                         without it digits are generated
  --samples N            generated digits for training (8192)
  --epochs N             (3); or --steps N
  --batch N              samples per worker and step (32)
  --lr RATE              for a global batch of --reference-batch (0.02)
  --reference-batch N    the rate grows with the global batch from here (32); 0: it does not
  --warm-up EPOCHS       (0.5)
  --momentum M           (0.9)
  --seed N               (1)
  --save FILE            the trained network as safetensors
  --evaluate FILE        no training: loss and accuracy of a network, of ours or of Python's
  --snapshot-dir FOLDER  snapshots, from which a later generation or job resumes
  --snapshot-every N     steps (20)
  --snapshot-keep N      (3)
  --log-every N          steps between two lines of progress (10)
  --metrics FILE         figures of each epoch, for trainer/training/plot.py
  --backend gloo|nccl    nccl: one GPU per worker (gloo)
  --timeout SECONDS      of each meeting of the workers (300)
  --crash-at-step N      in the first generation, with --crash-rank R (0): to try the restart
)";

struct MnistOptions : RunOptions {
    MnistOptions() : RunOptions{.program = "mnist", .backend = Backend::gloo} {}
    std::string data, evaluate;
    std::int64_t samples = 8192, batch = 32;
    double rate = 0.02, warm_up = 0.5, momentum = 0.9;
    std::int64_t reference_batch = 32;
    std::uint64_t seed = 1;
};

Result<MnistOptions> parse(const std::vector<std::string>& arguments) {
    using O = MnistOptions;
    const auto table = with_run_options<O>(
        {{"--data", text(&O::data)},
         {"--samples", number(&O::samples, 1, 1e9)},
         {"--batch", number(&O::batch, 1, 1e6)},
         {"--lr", number(&O::rate, 0, 1e3)},
         {"--reference-batch", number(&O::reference_batch, 0, 1e9)},
         {"--warm-up", number(&O::warm_up, 0, 1e6)},
         {"--momentum", number(&O::momentum, 0, 1)},
         {"--seed", number(&O::seed, 0, 1e15)},
         {"--evaluate", text(&O::evaluate)},
         {"--save", text(&O::save)},
         {"--epochs", number(&O::epochs, 0, 1e9)},
         {"--backend", word(&O::backend, {{"gloo", Backend::gloo}, {"nccl", Backend::nccl}})}});
    auto needs = common_needs<O>();
    needs.push_back({"--samples", [](const O& o) { return o.data.empty(); }, "with --data"});
    add_needs<O>(
        needs,
        {"--samples", "--epochs", "--steps", "--batch", "--lr", "--reference-batch", "--warm-up",
         "--momentum", "--seed", "--save", "--snapshot-dir", "--log-every", "--metrics",
         "--crash-at-step"},
        [](const O& o) { return o.evaluate.empty(); }, "with --evaluate");
    auto options = parse_options(table, arguments, "mnist", needs);
    if (!options) return options;
    if (options->epochs < 0 && options->steps < 0) options->epochs = 3;
    return options;
}

// Names and order of creation are those of mnist.py, so the first weights are equal, too.
struct Network : torch::nn::Module {
    Network() {
        conv1 = register_module("conv1", torch::nn::Conv2d(1, 8, 3));
        norm = register_module("norm", torch::nn::BatchNorm2d(8));
        conv2 = register_module("conv2", torch::nn::Conv2d(8, 16, 3));
        fc1 = register_module("fc1", torch::nn::Linear(16 * 5 * 5, 64));
        fc2 = register_module("fc2", torch::nn::Linear(64, 10));
    }
    torch::Tensor forward(torch::Tensor x) {
        x = torch::max_pool2d(torch::relu(norm(conv1(x))), 2);
        x = torch::max_pool2d(torch::relu(conv2(x)), 2);
        return fc2(torch::relu(fc1(x.flatten(1))));
    }
    torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
    torch::nn::BatchNorm2d norm{nullptr};
    torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};

// Images and labels as tensors, and batches of them on the network's device.
class Data {
  public:
    Data(Digits digits, torch::Device device) : digits_(std::move(digits)), device_(device) {
        const std::int64_t count = digits_.size();
        images_ = torch::from_blob(digits_.images.data(), {count, 1, kSide, kSide}, torch::kUInt8);
        labels_ = torch::from_blob(digits_.labels.data(), {count}, torch::kUInt8);
    }
    Data(const Data&) = delete;
    Data& operator=(const Data&) = delete;

    std::int64_t size() const { return digits_.size(); }

    // With mean 0 and deviation 1, for the mean and the deviation of MNIST.
    std::pair<torch::Tensor, torch::Tensor> batch(const std::vector<std::int64_t>& samples) const {
        const auto which = torch::tensor(samples);
        const auto images = images_.index_select(0, which).to(device_).to(torch::kFloat32);
        const auto labels = labels_.index_select(0, which).to(device_).to(torch::kInt64);
        return {(images / 255 - 0.1307) / 0.3081, labels};
    }

  private:
    Digits digits_;
    torch::Device device_;
    torch::Tensor images_, labels_;
};

struct Score {
    WeightedMean loss, right;
};

// This rank's part of the test images: every world-th one.
Score score(Network& net, const Data& data, int rank, int world) {
    constexpr std::int64_t kBatch = 256;
    const torch::NoGradGuard guard;
    net.eval();
    Score mine;
    std::vector<std::int64_t> samples;
    for (std::int64_t i = rank; i < data.size(); i += world) {
        samples.push_back(i);
        if (static_cast<std::int64_t>(samples.size()) < kBatch && i + world < data.size()) continue;
        const auto [images, labels] = data.batch(samples);
        const auto answers = net.forward(images);
        const auto count = static_cast<double>(samples.size());
        mine.loss.add(torch::nn::functional::cross_entropy(answers, labels).item<double>(), count);
        mine.right.add((answers.argmax(1) == labels).sum().item<double>() / count, count);
        samples.clear();
    }
    net.train();
    return mine;
}

Digits digits_of(const MnistOptions& options, bool training) {
    if (!options.data.empty())
        return or_throw(load_digits(options.data, training ? "train" : "t10k"));
    return training ? made_digits(options.samples, 10) : made_digits(2048, 20);
}

// The line at the end: what all workers found on all test images.
std::string result_line(ModuleRun& run, Network& net, const Data& test) {
    const Score mine = score(net, test, run.rank(), run.world());
    char line[96];
    std::snprintf(line, sizeof line, "validation=%.9g accuracy=%.4f",
                  or_throw(mean_over_ranks(run.group(), mine.loss)).mean().value_or(0),
                  or_throw(mean_over_ranks(run.group(), mine.right)).mean().value_or(0));
    return line;
}

int train(const MnistOptions& options) {
    auto stop = StopRequest::from_environment();
    // What is wrong with them is said before the workers meet.
    Digits digits = digits_of(options, options.evaluate.empty()),
           others = digits_of(options, false);
    const std::int64_t count = digits.size();
    const std::string contents = checksum_of(std::as_bytes(std::span(digits.images))) +
                                 checksum_of(std::as_bytes(std::span(digits.labels)));
    ModuleRun run(options, {count, options.seed}, std::move(stop));
    const torch::Device device(run.gpu() < 0 ? "cpu" : "cuda:" + std::to_string(run.gpu()));
    const Data data(std::move(digits), device), test(std::move(others), device);
    torch::manual_seed(options.seed);
    auto net = std::make_shared<Network>();
    net->to(device);
    torch::optim::SGD optimizer(net->parameters(),
                                torch::optim::SGDOptions(0.1).momentum(options.momentum));
    run.begin(*net, optimizer,
              {{"--seed", std::to_string(options.seed)}, {"set of digits", contents}},
              [&] { return score(*net, test, run.rank(), run.world()).loss; });
    if (!options.evaluate.empty()) {
        load_file(options.evaluate, *net);
        return run.finish(result_line(run, *net, test));
    }
    auto model = or_throw(DataParallelModule<Network>::make(run.group(), net));
    run.set_prepare([&] { model.broadcast_buffers(); });
    const Schedule schedule{options.rate, static_cast<double>(options.reference_batch),
                            options.warm_up};
    while (run.goes_on()) {
        const double rate =
            rate_at(schedule, run.epochs(), static_cast<double>(options.batch) * run.world());
        for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
        const auto samples = run.next(options.batch);
        const auto [images, labels] = data.batch(samples);
        optimizer.zero_grad();
        const auto loss = torch::nn::functional::cross_entropy(model.forward(images), labels);
        loss.backward();
        optimizer.step();
        run.count(loss.item<double>(), static_cast<double>(samples.size()));
        run.count(model.times());
        run.end_step();
    }
    if (run.rank() == 0 && !options.save.empty() && !run.stopped()) save_file(options.save, *net);
    return run.finish(run.stopped() ? "" : result_line(run, *net, test));
}

}  // namespace

int main(int argc, char** argv) {
    return run_program("mnist", [&] {
        const auto options = or_throw(parse({argv + 1, argv + argc}));
        if (options.help) return std::fputs(kHelp, stdout) < 0 ? 1 : 0;
        return train(options);
    });
}
