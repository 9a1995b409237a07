// Gradients of a torch::nn::Module over two ranks: the same as on one rank with all samples, and
// the same bits as c10d::Reducer, which is the core of PyTorch's DistributedDataParallel.
#include "trainer/torch/data_parallel_module.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/version.h>

#if TORCH_VERSION_MAJOR >= 2  // Debian's has not all headers of it
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#endif

#include "tests/trainer/ranks.h"
#include "trainer/torch/torch_group.h"

namespace ddprun::trainer {
namespace {

using test::Ends;
using test::run_ranks;
using torch::Tensor;

// Two layers, a normalization with buffers, and one layer that forward() uses only if told to.
struct Net : torch::nn::Module {
    Net() {
        first = register_module("first", torch::nn::Linear(6, 8));
        norm = register_module("norm", torch::nn::BatchNorm1d(8));
        last = register_module("last", torch::nn::Linear(8, 1));
        spare = register_module("spare", torch::nn::Linear(8, 1));
    }
    Tensor forward(const Tensor& x, bool use_spare = true) {
        const Tensor inside = norm(first(x).tanh());
        return use_spare ? last(inside) + spare(inside) : last(inside);
    }
    torch::nn::Linear first{nullptr}, last{nullptr}, spare{nullptr};
    torch::nn::BatchNorm1d norm{nullptr};
};

std::shared_ptr<Net> net_of(std::uint64_t seed) {
    torch::manual_seed(seed);
    return std::make_shared<Net>();
}

// The samples of a rank in a step.
Tensor batch_of(int rank, int step) {
    torch::manual_seed(static_cast<std::uint64_t>(1000 * step + rank));
    return torch::randn({16, 6});
}

// One thread of computation for each rank, as ddprun gives it. Otherwise each has as many as there
// are cores, and they wait for each other without a pause: on two busy cores four ranks then took
// 18 s in place of 2 s, and more than the test has where much else runs.
struct Rank {
    explicit Rank(const Context& context)
        : store(connect_store(context, std::chrono::seconds(30)).value()),
          group(make_torch_group(context, *store, {Backend::gloo, std::chrono::minutes(2), {}})
                    .value()) {
        at::set_num_threads(1);
    }
    std::unique_ptr<Store> store;
    std::unique_ptr<ProcessGroup> group;
};

DataParallelModule<Net> wrap(Rank& me, const std::shared_ptr<Net>& net,
                             const DataParallelOptions& options = {}) {
    return DataParallelModule<Net>::make(*me.group, net, options).value();
}

// Small buckets, so that there are several.
DataParallelOptions small_buckets() {
    DataParallelOptions options;
    options.reducer.first_bucket_bytes = 64;
    options.reducer.bucket_bytes = 200;
    return options;
}

// The sentence of the error that a call throws.
template <class Call>
std::string sentence_of(const Call& call) {
    try {
        call();
    } catch (const ModuleError& error) {
        return error.error.sentence();
    }
    return "no error";
}
bool has(const std::string& text, const std::string& part) {
    const bool found = text.find(part) != std::string::npos;
    if (!found)
        std::fprintf(stderr, "\"%s\" does not contain \"%s\"\n", text.c_str(), part.c_str());
    return found;
}

// The mean over both ranks, computed on this one alone: gradients of the other rank's batch with
// the same parameters. In evaluation mode, so that no statistics couple the samples.
bool means_over_ranks(Net& net, int step, bool use_spare) {
    std::vector<Tensor> expected;
    std::vector<Tensor> got;
    for (auto& p : net.parameters()) {
        got.push_back(p.grad().defined() ? p.grad().clone() : Tensor());
        expected.push_back(torch::zeros_like(p));
    }
    for (int rank = 0; rank < 2; ++rank) {
        net.zero_grad();
        net.forward(batch_of(rank, step), use_spare).square().mean().backward();
        for (std::size_t i = 0; i < got.size(); ++i)
            if (net.parameters()[i].grad().defined()) expected[i] += net.parameters()[i].grad() / 2;
    }
    for (std::size_t i = 0; i < got.size(); ++i)
        if (got[i].defined() && !torch::allclose(got[i], expected[i], 1e-5, 1e-7)) return false;
    return true;
}

// Ranks begin with other parameters, and end up with those of rank 0. Several steps, with both
// kinds of zero_grad().
TEST(ModuleReducer, AveragesGradients) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context);
        auto net = net_of(static_cast<std::uint64_t>(context.rank.value));
        auto model = wrap(me, net, small_buckets());
        net->eval();
        if (!torch::equal(net->first->weight, net_of(0)->first->weight)) return 1;
        torch::optim::SGD optimizer(net->parameters(), 0.1);
        for (int step = 0; step < 4; ++step) {
            if (step % 2 == 0)
                optimizer.zero_grad();
            else
                for (auto& p : net->parameters()) p.mutable_grad().zero_();
            model.forward(batch_of(context.rank.value, step)).square().mean().backward();
            // Each gradient is a view of a bucket.
            for (std::size_t i = 0; i < net->parameters().size(); ++i)
                if (net->parameters()[i].grad().use_count() < 2) return 2;
            auto probe = net_of(7);
            {
                const c10::NoGradGuard guard;
                for (std::size_t i = 0; i < net->parameters().size(); ++i)
                    probe->parameters()[i].copy_(net->parameters()[i]),
                        probe->parameters()[i].mutable_grad() = net->parameters()[i].grad().clone();
            }
            probe->eval();
            if (!means_over_ranks(*probe, step, true)) return 3;
            optimizer.step();
        }
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Gradients of passes under no_sync() are added on each rank, and the sum is averaged with the last
// pass, whether grad() was there before or not.
TEST(ModuleReducer, AccumulatesWithoutSync) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context);
        auto net = net_of(1), plain = net_of(1);
        auto model = wrap(me, net, small_buckets());
        net->eval();
        plain->eval();
        for (int round = 0; round < 2; ++round) {
            if (round == 0)
                net->zero_grad();
            else
                for (auto& p : net->parameters()) p.mutable_grad().zero_();
            {
                auto quiet = model.no_sync();
                model.forward(batch_of(context.rank.value, 0)).square().mean().backward();
            }
            model.forward(batch_of(context.rank.value, 1)).square().mean().backward();
            plain->zero_grad();
            for (int rank = 0; rank < 2; ++rank)
                for (int step = 0; step < 2; ++step)
                    (plain->forward(batch_of(rank, step)).square().mean() / 2).backward();
            for (std::size_t i = 0; i < net->parameters().size(); ++i)
                if (!torch::allclose(net->parameters()[i].grad(), plain->parameters()[i].grad(),
                                     1e-5, 1e-7))
                    return 1 + round;
        }
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The running means of rank 0 count on all ranks, as in PyTorch: before a forward pass in training,
// not under no_sync() and not in evaluation.
TEST(ModuleReducer, BroadcastsBuffers) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context);
        auto net = net_of(1);
        auto model = wrap(me, net);
        const auto sum = [&] { return net->norm->running_mean.sum().item<double>(); };
        const auto differ = [&] {
            double range[] = {sum(), -sum()};
            if (!me.group->all_reduce_values(range, ReduceOp::max)) throw std::runtime_error("?");
            return range[0] != -range[1];
        };
        model.forward(batch_of(context.rank.value, 0)).sum().backward();
        if (!differ()) return 1;  // each has its own batch since the last broadcast
        {
            auto quiet = model.no_sync();
            (void)model.forward(batch_of(5, 0));
        }
        if (!differ()) return 2;
        net->eval();
        if (context.is_first()) (void)model.forward(batch_of(5, 0));  // one rank alone may do this
        net->train();
        (void)model.forward(batch_of(5, 0));
        if (differ()) return 3;
        return net->norm->num_batches_tracked.item<std::int64_t>() == 3 ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// One rank does not use a layer, and takes the other one's half gradient; a layer that no rank uses
// has none.
TEST(ModuleReducer, HandlesUnusedParameters) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context);
        auto net = net_of(1);
        DataParallelOptions options = small_buckets();
        options.reducer.find_unused = true;
        auto model = wrap(me, net, options);
        net->eval();
        model.forward(batch_of(0, 0), false).sum().backward();
        if (net->spare->weight.grad().defined()) return 1;
        net->zero_grad();
        model.forward(batch_of(0, 0), context.is_first()).sum().backward();
        if (!net->spare->weight.grad().defined()) return 2;
        if (!torch::equal(net->spare->weight.grad() * 2, net->last->weight.grad())) return 3;
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Rank 0 alone uses a layer, in a pass under no_sync(). The optimizers of both ranks make the same
// steps: after three of them the weights are equal, and the layer has been trained.
TEST(ModuleReducer, CountsWhatOneRankHasUsedWithoutSync) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context);
        auto net = net_of(1);
        const Tensor before = net->spare->weight.clone();
        DataParallelOptions options = small_buckets();
        options.reducer.find_unused = true;
        auto model = wrap(me, net, options);
        net->eval();
        torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
        for (int step = 0; step < 3; ++step) {
            optimizer.zero_grad();
            {
                auto quiet = model.no_sync();
                model.forward(batch_of(0, step), context.is_first()).sum().backward();
            }
            model.forward(batch_of(context.rank.value, step), false).square().sum().backward();
            optimizer.step();
        }
        std::vector<NamedBuffer> spare{
            {"spare", {net->spare->weight.data_ptr(), 8, DataType::float32}}};
        if (auto same = verify_equal(*me.group, spare); !same) return 1;
        return torch::equal(net->spare->weight, before) ? 2 : 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A rank whose update is another one is named in the next step, also where the program has given
// the parameter other memory.
TEST(ModuleReducer, NamesTheReplicaThatDrifts) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context);
        auto net = net_of(1);
        auto model = wrap(me, net, small_buckets());
        const auto step = [&] { model.forward(batch_of(1, 1)).square().sum().backward(); };
        step();
        const torch::NoGradGuard guard;
        net->last->weight.set_data(net->last->weight.clone());
        {
            const torch::AutoGradMode on(true);
            step();
        }
        if (!context.is_first()) net->last->weight[0][3] += 0.25;
        const torch::AutoGradMode on(true);
        return has(sentence_of(step),
                   "in step 3 of this reducer the content of \"last.weight\" is not the same on "
                   "rank 1 as on rank 0")
                   ? 0
                   : 1;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Without find_unused the parameter is named, on each rank.
TEST(ModuleReducer, NamesAParameterWithoutGradient) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context);
        auto net = net_of(1);
        auto model = wrap(me, net);
        const auto text =
            sentence_of([&] { model.forward(batch_of(0, 0), false).sum().backward(); });
        return has(text, "did not reach 2 of 8 parameters: \"spare.weight\", \"spare.bias\"") &&
                       has(text, "find_unused")
                   ? 0
                   : 1;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A module that changes after wrapping: another type, a frozen layer, a new layer, another tensor.
TEST(ModuleReducer, NamesAChange) {
    auto ends = run_ranks(1, [](const Context& context) {
        Rank me(context);
        const auto after = [&](const std::function<void(Net&)>& change) {
            auto net = net_of(1);
            auto model = wrap(me, net);
            change(*net);
            return sentence_of([&] { (void)model.forward(batch_of(0, 0)); });
        };
        if (!has(after([](Net& net) { net.to(torch::kFloat64); }),
                 "\"first.weight\" was Float [8, 6] on cpu, trained and is Double [8, 6] on cpu"))
            return 1;
        if (!has(after([](Net& net) { net.last->bias.requires_grad_(false); }),
                 "\"last.bias\" was Float [1] on cpu, trained and is Float [1] on cpu, not "
                 "trained"))
            return 2;
        if (!has(after([](Net& net) { net.register_module("more", torch::nn::Linear(1, 1)); }),
                 "\"more.weight\" is new"))
            return 3;
        if (!has(after([](Net& net) {
                     net.last->weight =
                         net.last->register_parameter("weight2", torch::zeros({1, 8}));
                 }),
                 "\"last.weight2\" is new"))
            return 4;
        return after([](Net&) {}) == "no error" ? 0 : 5;
    });
    EXPECT_EQ(ends, Ends({0}));
}

// One rank has its module in double precision, in another shape of as many elements, or with a
// frozen layer: refused before anything moves, with the name.
TEST(ModuleReducer, NamesWhatDiffersBetweenRanks) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context);
        const auto after = [&](const std::function<void(Net&)>& change) {
            auto net = net_of(1);
            if (!context.is_first()) change(*net);
            auto model = DataParallelModule<Net>::make(*me.group, net);
            if (model) return std::string("no error");
            EXPECT_EQ(model.error().code(), ErrorCode::refused);
            return model.error().sentence();
        };
        const std::string differs = "\" is not the same on rank 1 as on rank 0 (rank 0: 8 of F32, ";
        if (!has(after([](Net& net) { net.last->to(torch::kFloat64); }),
                 "\"last.weight [1, 8], trained" + differs + "rank 1: 8 of F64)"))
            return 1;
        const std::string mine = context.is_first() ? "[1, 8], trained" : "[8, 1], trained";
        if (!has(after([](Net& net) {
                     const c10::NoGradGuard guard;
                     net.last->weight.set_data(torch::zeros({8, 1}));
                 }),
                 "\"last.weight " + mine + differs + "rank 1: 8 of F32)"))
            return 2;
        const std::string frozen = context.is_first() ? "trained" : "not trained";
        if (!has(after([](Net& net) { net.last->weight.requires_grad_(false); }),
                 "\"last.weight [1, 8], " + frozen + differs + "rank 1: 8 of F32)"))
            return 3;
        return after([](Net&) {}) == "no error" ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// What cannot be reduced at all is named.
TEST(ModuleReducer, RefusesWhatItCannotReduce) {
    auto ends = run_ranks(1, [](const Context& context) {
        Rank me(context);
        auto frozen = net_of(1);
        for (auto& p : frozen->parameters()) p.requires_grad_(false);
        auto none = DataParallelModule<Net>::make(*me.group, frozen);
        if (none || !has(none.error().sentence(), "no parameter that requires a gradient"))
            return 1;
        auto words = std::make_shared<torch::nn::EmbeddingImpl>(
            torch::nn::EmbeddingOptions(5, 2).sparse(true));
        auto model = DataParallelModule<torch::nn::EmbeddingImpl>::make(*me.group, words).value();
        const auto text =
            sentence_of([&] { model.forward(torch::zeros({1}, torch::kLong)).sum().backward(); });
        return has(text, "the gradient of \"weight\" is sparse") ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0}));
}

// A gradient may outlive the wrapper and its reducer.
TEST(ModuleReducer, LeavesGradientsBehind) {
    auto ends = run_ranks(1, [](const Context& context) {
        Rank me(context);
        auto net = net_of(1);
        {
            auto model = wrap(me, net);
            model.forward(batch_of(0, 0)).sum().backward();
        }
        const Tensor before = net->first->weight.grad().clone();
        net->forward(batch_of(0, 0)).sum().backward();  // no hook is left
        return torch::equal(net->first->weight.grad(), before * 2) ? 0 : 1;
    });
    EXPECT_EQ(ends, Ends({0}));
}

#if TORCH_VERSION_MAJOR >= 2
// The oracle: c10d::Reducer on a group of its own, with the same buckets, in 20 steps of SGD. All
// parameters have the same bits, on two ranks and on four.
struct Oracle {
    Oracle(const Context& context, const Net& net) {
        ::c10d::TCPStoreOptions where;
        where.port = context.master_port;
        where.waitWorkers = false;
        auto keys = c10::make_intrusive<::c10d::PrefixStore>(
            "oracle", c10::make_intrusive<::c10d::TCPStore>(context.master_addr, where));
        const int rank = context.rank.value, size = context.world_size;
        auto options = ::c10d::ProcessGroupGloo::Options::create();
        options->devices.push_back(::c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
        auto gloo = c10::make_intrusive<::c10d::ProcessGroupGloo>(keys, rank, size, options);
        group = c10::make_intrusive<::c10d::ProcessGroup>(keys, rank, size);
        group->setBackend(c10::DeviceType::CPU, ::c10d::ProcessGroup::BackendType::GLOO, gloo);
        group->setDefaultBackend(::c10d::ProcessGroup::BackendType::GLOO);
        group->setGroupName("oracle");
        const auto parameters = net.parameters();
        const std::vector<std::size_t> sizes{64, 200};
        auto buckets = std::get<0>(::c10d::compute_bucket_assignment_by_size(parameters, sizes));
        std::reverse(buckets.begin(), buckets.end());
        reducer.emplace(parameters, buckets, group, std::vector<bool>(parameters.size()), 200,
                        false, false, std::unordered_map<std::size_t, std::string>(), 64, false,
                        false, std::vector<std::int64_t>());
    }
    c10::intrusive_ptr<::c10d::ProcessGroup> group;
    std::optional<::c10d::Reducer> reducer;
};

// Trains one of the two networks and returns its parameters in one row.
template <class Forward>
Tensor trained(Net& net, int rank, const Forward& forward) {
    net.eval();
    torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    for (int step = 0; step < 20; ++step) {
        optimizer.zero_grad();
        forward(batch_of(rank, step));
        optimizer.step();
    }
    std::vector<Tensor> all;
    for (const auto& p : net.parameters()) all.push_back(p.detach().flatten());
    return torch::cat(all);
}

TEST(ModuleReducer, HasTheBitsOfPyTorchsReducer) {
    for (int world : {2, 4}) {
        auto ends = run_ranks(
            world,
            [](const Context& context) {
                const int rank = context.rank.value;
                Rank me(context);
                auto ours = net_of(1), theirs = net_of(1);
                auto model = wrap(me, ours, small_buckets());
                const Tensor mine = trained(*ours, rank, [&](const Tensor& x) {
                    model.forward(x).square().mean().backward();
                });
                Oracle oracle(context, *theirs);
                const Tensor other = trained(*theirs, rank, [&](const Tensor& x) {
                    oracle.reducer->prepare_for_forward();
                    if (oracle.reducer->should_rebuild_buckets())
                        (void)oracle.reducer->rebuild_buckets();
                    const Tensor loss = theirs->forward(x).square().mean();
                    oracle.reducer->prepare_for_backward({loss});
                    loss.backward();
                });
                const double differ = (mine - other).abs().max().item<double>();
                // With two ranks there is one order of additions; a ring of four adds in the order
                // of its places in a bucket.
                const double most = context.world_size == 2 ? 0 : 2e-6;
                if (differ > most) std::fprintf(stderr, "they differ by %g\n", differ);
                if (!me.group->barrier()) return 2;
                return differ <= most && mine.abs().sum().item<double>() > 1 ? 0 : 1;
            },
            std::chrono::seconds(130));
        EXPECT_EQ(ends, Ends(static_cast<std::size_t>(world), 0));
    }
}
#endif

}  // namespace
}  // namespace ddprun::trainer
