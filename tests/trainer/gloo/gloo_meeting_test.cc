// Ranks that connect, and those that do not: all give up together, at one deadline, and name the
// ranks that are missing with their places, not the rank for which they happened to wait.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "tests/trainer/group_rank.h"

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Ends;
using test::run_ranks;

// A connection to the store with something done after a key is set, or time taken for each get.
class WatchedStore : public Store {
  public:
    using After = std::function<void(const std::string& key, Store& store)>;
    WatchedStore(std::unique_ptr<Store> store, After after_set, milliseconds each_get)
        : store_(std::move(store)), after_set_(std::move(after_set)), each_get_(each_get) {}

    Result<void> set(const std::string& key, const std::string& value) override {
        auto done = store_->set(key, value);
        if (after_set_) after_set_(key, *store_);
        return done;
    }
    // The time that a busy store takes. A caller who does not have it gets `timed_out`.
    Result<std::string> get(const std::string& key, milliseconds timeout) override {
        std::this_thread::sleep_for(std::min(timeout, each_get_));
        if (timeout < each_get_) return Error(ErrorCode::timed_out, "the store is slow");
        return store_->get(key, timeout - each_get_);
    }
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        return store_->add(key, delta);
    }
    Result<void> remove(const std::string& key) override { return store_->remove(key); }
    Result<std::unique_ptr<Store>> another(const std::string& folder) const override {
        auto store = store_->another(folder);
        if (!store) return store.error();
        return std::unique_ptr<Store>(new WatchedStore(std::move(*store), after_set_, each_get_));
    }

  private:
    const std::unique_ptr<Store> store_;
    const After after_set_;
    const milliseconds each_get_;
};

Result<std::unique_ptr<ProcessGroup>> connect(const Context& context, Store& store,
                                              milliseconds timeout) {
    return make_process_group(context, store, {Backend::gloo, timeout, {}});
}

int expects_missing(const Result<std::unique_ptr<ProcessGroup>>& group, const std::string& text) {
    if (group) return 91;
    if (group.error().code() != ErrorCode::timed_out) return 92;
    return test::expects_error(group.error(), text);
}

// Rank 2 hangs when it has told its addresses. Ranks 0 and 1 may wait for each other meanwhile, and
// rank 3 for either. All name rank 2 and where it is. Rank 1 gives up after half a second; the
// others had a minute, and end with it: the test gives them 20 s.
TEST(GlooMeeting, NamesTheRankThatHangsAndEndsOnAllRanks) {
    const auto ends = run_ranks(
        4,
        [](const Context& context) {
            auto plain = connect_store(context, seconds(10)).value();
            const std::string mine = std::to_string(context.rank.value);
            // A rank that has told its addresses has begun to listen for the word of others.
            auto began = [&](const std::string& key, Store&) {
                if (!key.ends_with("addresses/" + mine)) return;
                (void)plain->set("began" + mine, std::to_string(getpid()));
                (void)plain->add("said", 1);
                if (context.rank.value == 2) (void)raise(SIGSTOP);
            };
            WatchedStore store(connect_store(context, seconds(10)).value(), began, milliseconds(0));
            // Rank 1 begins last, so that it does not give up before.
            for (const char* word : {"began0", "began2", "began3"})
                if (context.rank.value == 1 && !plain->get(word, seconds(15))) return 3;
            auto group = connect(
                context, store, context.rank.value == 1 ? milliseconds(500) : milliseconds(60'000));
            const int code =
                expects_missing(group, "rank 2 did not join the process group within 500 ms");

            // The hanging rank is ended when all have seen it hang.
            const std::string saw = "saw" + mine;
            if (!plain->set(saw, "1") || !plain->add("said", 1)) return 1;
            if (context.rank.value != 0) return code;
            for (const char* word : {"saw1", "saw3"})
                if (!plain->get(word, seconds(20))) return 2;
            (void)kill(std::stoi(plain->get("began2", seconds(20)).value()), SIGKILL);
            return code;
        },
        seconds(20));
    EXPECT_EQ(ends, Ends({0, 0, -SIGKILL, 0}));
}

// Where the missing rank is: its host, and the address at which it was waited for.
TEST(GlooMeeting, SaysWhereTheMissingRankIs) {
    const auto ends = run_ranks(2, [](const Context& context) {
        auto plain = connect_store(context, seconds(10)).value();
        auto hang = [&](const std::string& key, Store&) {
            if (context.is_first() || !key.ends_with("addresses/1")) return;
            (void)plain->set("hangs", std::to_string(getpid()));
            (void)plain->add("said", 1);
            (void)raise(SIGSTOP);
        };
        WatchedStore store(connect_store(context, seconds(10)).value(), hang, milliseconds(0));
        if (context.is_first() && !plain->get("hangs", seconds(15))) return 1;
        const auto group = connect(context, store, seconds(2));
        (void)kill(std::stoi(plain->get("hangs", seconds(15)).value()), SIGKILL);
        char host[256] = "";
        gethostname(host, sizeof host - 1);
        return expects_missing(group,
                               " within 2000 ms (rank 1 on " + std::string(host) + " [127.0.0.1]:");
    });
    EXPECT_EQ(ends, Ends({0, -SIGKILL}));
}

// Two of four ranks never come. The two others name both, and not each other.
TEST(GlooMeeting, NamesTheRanksThatDoNotCome) {
    const auto ends = run_ranks(4, [](const Context& context) {
        if (context.rank.value % 2) return 0;
        auto store = connect_store(context, seconds(10)).value();
        // Both are there before either begins.
        (void)store->set("here" + std::to_string(context.rank.value), "1");
        if (!store->get("here0", seconds(15)) || !store->get("here2", seconds(15))) return 1;
        return expects_missing(connect(context, *store, seconds(1)),
                               "ranks 1 and 3 did not join the process group within 1000 ms; see "
                               "their logs");
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0}));
}

// One rank cannot begin: its variable names a network that it does not have. The others end with
// its reason, although nobody is missing.
TEST(GlooMeeting, TellsTheOthersWhyARankCannotConnect) {
    const auto ends = run_ranks(
        3,
        [](const Context& context) {
            if (context.rank.value == 1) setenv("GLOO_SOCKET_IFNAME", "nowhere0", 1);
            auto store = connect_store(context, seconds(10)).value();
            auto group = connect(context, *store, seconds(60));
            if (group) return 1;
            return test::expects_error(group.error(), "nowhere0");
        },
        seconds(20));
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// A rank that comes when the others have given up is told so, and does not wait for a minute.
TEST(GlooMeeting, TellsARankThatComesTooLate) {
    const auto ends = run_ranks(
        2,
        [](const Context& context) {
            auto store = connect_store(context, seconds(10)).value();
            const bool late = context.rank.value == 1;
            if (late && !store->get("gave up", seconds(15))) return 1;
            auto group = connect(context, *store, late ? seconds(60) : milliseconds(200));
            if (group) return 2;
            return late || (store->set("gave up", "1") && store->add("said", 1)) ? 0 : 3;
        },
        seconds(20));
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The time-out is that of the whole way. Each word of another rank takes 100 ms, so rank 0 cannot
// hear eight of them in 300 ms. (With a time-out for each word it could, in 800 ms.)
TEST(GlooMeeting, HasOneDeadlineForTheChoiceOfTheBackend) {
    const auto ends = run_ranks(8, [](const Context& context) {
        WatchedStore store(connect_store(context, seconds(10)).value(), {},
                           milliseconds(context.is_first() ? 100 : 0));
        auto group =
            make_process_group(context, store, {Backend::automatic, milliseconds(300), {}});
        if (group) return 1;
        // Rank 0 says it before anybody connects.
        if (!context.is_first()) return 0;
        return test::expects_error(group.error(), "did not join the process group: the store");
    });
    EXPECT_EQ(ends, Ends(8, 0));
}

}  // namespace
}  // namespace ddprun::trainer
