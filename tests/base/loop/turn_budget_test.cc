// The share of each turn of the loop for those who read what workers write.
#include "base/loop/turn_budget.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "tests/support/loop.h"

namespace ddprun {
namespace {

// Readers that always find 10 bytes more, and other work that counts the turns of the loop.
struct Flood {
    explicit Flood(int readers) : read(static_cast<std::size_t>(readers)) {
        for (std::size_t i = 0; i < read.size(); ++i) ask(i);
        count_turns();
    }
    void ask(std::size_t reader) {
        budget->spend([this, reader]() -> std::size_t {
            if (over) return 0;
            read[reader] += 10;
            ask(reader);
            return 10;
        });
    }
    void count_turns() {
        asio::post(loop, [this] {
            if (++turns < 50) return count_turns();
            over = true;
        });
    }
    int all() const {
        int sum = 0;
        for (const int bytes : read) sum += bytes;
        return sum;
    }

    asio::io_context loop{1};
    std::shared_ptr<TurnBudget> budget = std::make_shared<TurnBudget>(loop, 100);
    std::vector<int> read;
    int turns = 0;
    bool over = false;
};

// However many read, a turn gives them 100 bytes together, and each the same.
TEST(TurnBudget, IsTheSameForOneAndForMany) {
    for (const int readers : {1, 7, 64}) {
        Flood flood(readers);
        ASSERT_TRUE(run_until(flood.loop, [&] { return flood.over; }));
        EXPECT_GE(flood.all(), 49 * 100);
        EXPECT_LE(flood.all(), 52 * 100);
        const auto [least, most] = std::minmax_element(flood.read.begin(), flood.read.end());
        // The first one had asked before the others could, so it has the first turn for itself.
        EXPECT_LE(*most - *least, 110) << readers << " readers";
    }
}

// Who asks while something is left is served within the call: a lone line is not delayed.
TEST(TurnBudget, ServesAtOnceWhatFits) {
    asio::io_context loop{1};
    const auto budget = std::make_shared<TurnBudget>(loop, 100);
    int served = 0;
    const auto read = [&]() -> std::size_t { return ++served, 60; };
    budget->spend(read);
    budget->spend(read);
    EXPECT_EQ(served, 2) << "the budget was not used up when the second one asked";
    budget->spend(read);
    EXPECT_EQ(served, 2);
    settle(loop);
    EXPECT_EQ(served, 3);
}

// The last one that holds the budget may let it go while it is being served.
TEST(TurnBudget, MayGoWhileItServes) {
    asio::io_context loop{1};
    auto budget = std::make_shared<TurnBudget>(loop, 100);
    budget->spend([&budget]() -> std::size_t { return budget.reset(), 60; });
    EXPECT_EQ(budget, nullptr);
    settle(loop);
}

}  // namespace
}  // namespace ddprun
