// Batches that threads load ahead: their order, the position of a snapshot, errors, memory. One
// process; the ranks of a job are samplers.
#include "trainer/training/data_loader.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>

namespace ddprun::trainer {
namespace {

using testing::HasSubstr;

DistributedSampler sampler_of(std::int64_t samples, int rank = 0, int world = 1) {
    return DistributedSampler::make({samples, 7}, rank, world).value();
}

// Sample i is the floats i and i + 0.5 and the whole number that it was given for augmentation.
const std::vector<BatchField> kFields{{DataType::float32, 2}, {DataType::uint64, 1}};

Result<void> load_numbers(const Sample& sample, const SampleMemory& to) {
    auto* x = reinterpret_cast<float*>(to[0].data());
    x[0] = static_cast<float>(sample.index);
    x[1] = x[0] + 0.5f;
    *reinterpret_cast<std::uint64_t*>(to[1].data()) = sample.random;
    return {};
}

std::unique_ptr<DataLoader> loader_of(DistributedSampler sampler, const LoaderOptions& options,
                                      LoadSample load = load_numbers) {
    return DataLoader::make(std::move(sampler), kFields, std::move(load), options).value();
}

// A batch in words of its own; empty at the end of an epoch.
struct Seen {
    std::vector<std::int64_t> samples;
    std::vector<std::uint64_t> random;
    bool operator==(const Seen&) const = default;
};

Seen next_of(DataLoader& loader) {
    const Batch batch = loader.next().value();
    Seen seen{batch.samples, {}};
    if (batch.samples.empty()) return seen;
    const auto* x = static_cast<float*>(batch.fields[0].data);
    const auto* random = static_cast<std::uint64_t*>(batch.fields[1].data);
    EXPECT_EQ(batch.fields[0].count, 2 * batch.samples.size());
    EXPECT_EQ(batch.fields[1].count, batch.samples.size());
    for (std::size_t i = 0; i < batch.samples.size(); ++i) {
        EXPECT_EQ(x[2 * i], static_cast<float>(batch.samples[i]));
        EXPECT_EQ(x[2 * i + 1], x[2 * i] + 0.5f);
        seen.random.push_back(random[i]);
    }
    return seen;
}

// The order is the sampler's, over the ends of epochs, with any number of threads; also the numbers
// for augmentation, which differ from epoch to epoch.
TEST(DataLoader, HasTheSamplersOrderWithAnyNumberOfThreads) {
    std::vector<Seen> first;
    for (int threads : {1, 2, 8}) {
        auto sampler = sampler_of(103, 1, 2);
        auto loader = loader_of(sampler, {.batch = 5, .threads = threads, .seed = 3});
        std::vector<Seen> all;
        for (int epoch = 0; epoch < 3; ++epoch) {
            while (loader->left() > 0) {
                EXPECT_EQ(loader->left(), sampler.left());
                all.push_back(next_of(*loader));
                EXPECT_EQ(all.back().samples, sampler.next(5));
                EXPECT_EQ(loader->position(), sampler.position());
            }
            // The end of an epoch stays until it is left.
            for (int twice = 0; twice < 2; ++twice) EXPECT_TRUE(next_of(*loader).samples.empty());
            loader->next_epoch();
            sampler.next_epoch();
            EXPECT_EQ(loader->position(), sampler.position());
        }
        if (first.empty()) first = all;
        EXPECT_EQ(all, first) << threads;
    }
    EXPECT_NE(first.front().random, first[first.size() / 2].random);
}

// Two ranks are interrupted with several batches loaded ahead. Three ranks go on from the position
// of the snapshot: every sample has been seen once, none twice.
TEST(DataLoader, CountsOnlyWhatWasSeen) {
    std::multiset<std::int64_t> seen;
    SamplerPosition saved;
    const auto take = [&](DataLoader& loader, int batches) {
        for (int i = 0; i < batches && loader.left() > 0; ++i)
            for (std::int64_t sample : next_of(loader).samples) seen.insert(sample);
        return loader.position();
    };
    for (int rank : {0, 1}) {
        std::atomic<int> loaded = 0;
        auto loader = loader_of(sampler_of(120, rank, 2), {.batch = 4, .threads = 2, .ahead = 6},
                                [&](const Sample& sample, const SampleMemory& to) {
                                    ++loaded;
                                    return load_numbers(sample, to);
                                });
        saved = take(*loader, 3);
        // 3 batches are used up or in use, and 6 more are ahead.
        while (loaded < 9 * 4) std::this_thread::yield();
    }
    EXPECT_EQ(saved, (SamplerPosition{0, 24}));
    for (int rank : {0, 1, 2}) {
        auto sampler = sampler_of(120, rank, 3);
        ASSERT_TRUE(sampler.resume(saved));
        auto loader = loader_of(std::move(sampler), {.batch = 4, .threads = 3});
        (void)take(*loader, 1000);
    }
    EXPECT_EQ(seen.size(), 120u);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 120u);
}

// Never more than ahead + 1 batches, whatever the threads do.
TEST(DataLoader, LoadsNoMoreThanItHasMemoryFor) {
    std::atomic<int> used_up = 0, begun = 0;
    std::atomic<bool> too_many = false;
    auto loader = loader_of(sampler_of(1000), {.batch = 2, .threads = 4, .ahead = 3},
                            [&](const Sample& sample, const SampleMemory& to) {
                                if (++begun > 2 * (used_up + 4)) too_many = true;
                                return load_numbers(sample, to);
                            });
    for (bool first = true; loader->left() > 0; first = false) {
        // All memory is in use, as it is while the program works on a batch for long.
        while (begun < std::min(1000, 2 * (used_up + 4))) std::this_thread::yield();
        // next() is about to use up the batch before.
        if (!first) ++used_up;
        (void)next_of(*loader);
    }
    EXPECT_FALSE(too_many);
}

// The error comes in its turn, behind the batches before it, although a later sample failed first.
// It stays, and after resume() the loader goes on behind it.
TEST(DataLoader, TellsTheErrorOfASample) {
    std::atomic<bool> later_failed = false;
    auto sampler = DistributedSampler::make({40, 0, false}, 0, 1).value();
    auto loader = loader_of(std::move(sampler), {.batch = 4, .threads = 2, .ahead = 4},
                            [&](const Sample& sample, const SampleMemory& to) -> Result<void> {
                                if (sample.index == 9) {
                                    while (!later_failed) std::this_thread::yield();
                                    return Error(ErrorCode::not_found, "cannot open 9.png");
                                }
                                if (sample.index == 12) {
                                    later_failed = true;
                                    throw std::runtime_error("12.png is empty");
                                }
                                return load_numbers(sample, to);
                            });
    EXPECT_EQ(next_of(*loader).samples, (std::vector<std::int64_t>{0, 1, 2, 3}));
    EXPECT_EQ(next_of(*loader).samples, (std::vector<std::int64_t>{4, 5, 6, 7}));
    for (int twice = 0; twice < 2; ++twice)
        EXPECT_EQ(loader->next().error(),
                  Error(ErrorCode::not_found, "sample 9 of epoch 0: cannot open 9.png"));
    EXPECT_EQ(loader->position(), (SamplerPosition{0, 8}));
    ASSERT_TRUE(loader->resume({0, 12}));
    EXPECT_EQ(loader->next().error(),
              Error(ErrorCode::unavailable, "sample 12 of epoch 0: 12.png is empty"));
    ASSERT_TRUE(loader->resume({0, 16}));
    EXPECT_EQ(next_of(*loader).samples, (std::vector<std::int64_t>{16, 17, 18, 19}));
    // A position that does not exist changes nothing.
    EXPECT_EQ(loader->resume({0, 41}).error().code(), ErrorCode::usage);
    EXPECT_EQ(next_of(*loader).samples, (std::vector<std::int64_t>{20, 21, 22, 23}));
}

// The rest of an epoch is dropped, with what was loaded of it.
TEST(DataLoader, LeavesAnEpochEarly) {
    auto sampler = sampler_of(50);
    auto loader = loader_of(sampler, {.batch = 3, .threads = 2});
    for (int epoch = 0; epoch < 4; ++epoch) {
        EXPECT_EQ(next_of(*loader).samples, sampler.next(3));
        loader->next_epoch();
        sampler.next_epoch();
        EXPECT_EQ(loader->position(), (SamplerPosition{epoch + 1, 0}));
    }
}

TEST(DataLoader, RefusesWhatCannotWork) {
    const auto sentence = [](std::vector<BatchField> fields, const LoaderOptions& options) {
        auto made = DataLoader::make(sampler_of(5), std::move(fields), load_numbers, options);
        return made ? std::string("none") : made.error().sentence();
    };
    EXPECT_THAT(sentence(kFields, {.batch = 0}), HasSubstr("batches of 0 samples, 1 threads"));
    EXPECT_THAT(sentence(kFields, {.threads = 0}), HasSubstr("1 samples, 0 threads"));
    EXPECT_THAT(sentence(kFields, {.ahead = -1}), HasSubstr("-1 batches ahead"));
    EXPECT_THAT(sentence(kFields, {.threads = 1'000'000}), HasSubstr("1 to 1024 threads"));
    EXPECT_THAT(sentence(kFields, {.ahead = 2'000'000'000}), HasSubstr("0 to 65536 batches"));
    // Sizes that would not fit a number of bytes.
    EXPECT_THAT(sentence(kFields, {.batch = std::int64_t{1} << 62}), HasSubstr("1 to 1073741824"));
    EXPECT_THAT(sentence({{DataType::float32, std::size_t{1} << 62}}, {}), HasSubstr("field 0"));
    EXPECT_THAT(sentence({}, {}), HasSubstr("without fields"));
    EXPECT_THAT(sentence({{DataType::float32, 0}}, {}), HasSubstr("field 0"));
}

}  // namespace
}  // namespace ddprun::trainer
