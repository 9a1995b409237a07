// LedgerWatch around a ledger that hangs: every call is answered within the limit. The ledger below
// is one in memory that the test stops and lets go.
#include "rendezvous/ledger/ledger_watch.h"

#include "rendezvous/ledger/ledger_memory.h"
#include "tests/rendezvous/ledger/ledger_bench.h"

namespace ddprun::rendezvous {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Holds its answers back until let_go(), as a file system that hangs and comes back. asked() counts
// the calls that reached it.
class Hanging final : public Ledger {
  public:
    explicit Hanging(asio::io_context& loop) : memory_(loop) {}
    void read(EntryNumber from, ReadDone done) override {
        ask([this, from, done = std::move(done)] { memory_.read(from, done); });
    }
    void create(LedgerEntry entry, CreateDone done) override {
        ask([this, entry, done = std::move(done)] { memory_.create(entry, done); });
    }
    void look(EntryNumber from, LookDone done) override {
        ask([this, from, done = std::move(done)] { memory_.look(from, done); });
    }
    std::string name() const override { return "directory:/slow"; }
    void hang() { hangs_ = true; }
    // Carries out what was held back, in the order of the calls.
    void let_go() {
        hangs_ = false;
        for (const auto& call : std::exchange(held_, {})) call();
    }
    int asked() const { return asked_; }

  private:
    void ask(std::function<void()> call) {
        ++asked_;
        hangs_ ? held_.push_back(std::move(call)) : call();
    }
    LedgerMemory memory_;
    bool hangs_ = false;
    int asked_ = 0;
    std::vector<std::function<void()>> held_;
};

// The watch with this limit, and the ledger below it.
struct WatchBench : LedgerBench {
    Hanging* below = nullptr;
    std::unique_ptr<Ledger> watch;
    explicit WatchBench(Duration limit) {
        auto hanging = std::make_unique<Hanging>(loop);
        below = hanging.get();
        watch = std::make_unique<LedgerWatch>(loop, std::move(hanging), limit);
    }
};

// 20 s: no answer here takes so long.
TEST(LedgerWatch, ChangesNothingOfALedgerThatAnswers) {
    WatchBench bench(std::chrono::seconds{20});
    keeps_the_promises(bench, *bench.watch);
}

// Three creates and a read are answered, with the limit in the sentence. Only the first call is in
// the ledger: the others would be carried out late, when nobody waits for them any more. The
// hanging create is carried out in the end, and is found like any other entry.
TEST(LedgerWatch, AnswersForALedgerThatHangs) {
    WatchBench bench(std::chrono::milliseconds{20});
    bench.below->hang();
    for (int i = 1; i <= 3; ++i) {
        const auto late = bench.create(*bench.watch, example_entry(0, i));
        EXPECT_EQ(late.outcome, Outcome::failed);
        EXPECT_THAT(late.sentence, HasSubstr("directory:/slow has not answered for"));
    }
    const auto read = bench.read(*bench.watch, 0);
    EXPECT_EQ(read.error().code(), ErrorCode::timed_out);
    EXPECT_EQ(bench.below->asked(), 1) << "one call hangs, the others were given up before";
    bench.below->let_go();
    // Exactly the first entry: those that were given up never reach the ledger.
    EXPECT_TRUE(comes_true([&] {
        const auto entries = bench.read(*bench.watch, 0);
        return entries && *entries == std::vector{example_entry(0, 1)};
    }));
}

// Calls behind a slow one wait for it. Entries must be created in the order of their numbers.
TEST(LedgerWatch, KeepsTheOrder) {
    WatchBench bench(std::chrono::seconds{20});
    bench.below->hang();
    std::vector<int> order;
    for (int i = 0; i < 3; ++i)
        bench.watch->create(example_entry(i), [&, i](LedgerCreated) { order.push_back(i); });
    settle(bench.loop);
    // The others wait in the watch, not in the ledger.
    EXPECT_EQ(bench.below->asked(), 1);
    bench.below->let_go();
    EXPECT_TRUE(run_until(bench.loop, [&] { return order.size() == 3; }));
    EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

// A ledger goes away with calls in it and behind it. Nobody is called, and the timers of an hour do
// not keep the loop from ending.
TEST(LedgerWatch, IsSilentWhenDestroyed) {
    WatchBench bench(std::chrono::hours{1});
    bench.below->hang();
    bool called = false;
    for (int i = 0; i < 2; ++i)
        bench.watch->create(example_entry(i), [&](LedgerCreated) { called = true; });
    settle(bench.loop);
    bench.watch.reset();
    bench.loop.restart();
    bench.loop.run();
    EXPECT_FALSE(called);
}

}  // namespace
}  // namespace ddprun::rendezvous
