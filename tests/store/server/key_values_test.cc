// What each request does to the store, and which connections are answered: scripts of requests of a
// few connections, without sockets. Pure.
#include "store/server/key_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string number(std::int64_t value) {
    std::string out;
    put_u64(out, static_cast<std::uint64_t>(value));
    return out;
}
std::string text(const std::string& value) {
    std::string out;
    put_text(out, value);
    return out;
}

// The one-byte answers to CHECK (0: all keys exist) and to WAIT (0: they exist now, 1: taken back).
const std::string kReady(1, '\0');
const std::string kNotReady(1, '\1');
const std::string kStop(1, '\0');
const std::string kCanceled(1, '\1');

// The connection that is answered, and the bytes.
using Sent = std::pair<int, std::string>;

// Joins pieces in a row for one connection: an answer may consist of several.
std::vector<Sent> joined(const std::vector<Sent>& sent) {
    std::vector<Sent> whole;
    for (const Sent& piece : sent) {
        if (whole.empty() || whole.back().first != piece.first) whole.emplace_back(piece.first, "");
        whole.back().second += piece.second;
    }
    return whole;
}

// One store with a limit of 100 bytes for a value, and connections by number.
class KeyValuesTest : public testing::Test {
  protected:
    // The answers to one request, in the order in which they are sent. A refusal is in error_.
    std::vector<Sent> ask(int from, Operation operation, std::vector<std::string> keys = {},
                          std::vector<std::string> values = {}, std::int64_t argument = 0) {
        std::vector<Reply> replies;
        const Result<> served = store_.handle(
            id(from), {operation, std::move(keys), std::move(values), argument}, replies);
        error_ = served ? "" : served.error().sentence();
        std::vector<Sent> sent;
        for (const Reply& reply : replies) {
            sent.emplace_back(static_cast<int>(reply.to.value), reply.flat());
        }
        return sent;
    }
    static ConnectionId id(int connection) {
        return ConnectionId(static_cast<std::uint64_t>(connection));
    }
    std::vector<Sent> set(int from, const std::string& key, const std::string& value) {
        return ask(from, Operation::set, {key}, {value});
    }
    // Connection 9 only looks; it takes no part in the scripts.
    std::string get(const std::string& key) { return ask(9, Operation::get, {key}).at(0).second; }

    KeyValues store_{Limits{.max_value = 100}};
    std::string error_;
};

// SET has no answer. GET of a missing key gives an empty value at once: only a race asks for one,
// and closing the connection, as one of PyTorch's servers does, would end a worker.
TEST_F(KeyValuesTest, SetsAndGets) {
    EXPECT_THAT(set(1, "/k", "v"), IsEmpty());
    EXPECT_THAT(ask(2, Operation::get, {"/k"}), ElementsAre(Sent{2, text("v")}));
    EXPECT_THAT(ask(2, Operation::get, {"/none"}), ElementsAre(Sent{2, text("")}));
    set(1, "/k", "w");
    EXPECT_THAT(ask(2, Operation::multi_get, {"/k", "/none", "/k"}),
                ElementsAre(Sent{2, text("w")}, Sent{2, text("")}, Sent{2, text("w")}));
    EXPECT_THAT(ask(2, Operation::multi_get), IsEmpty());
    // The nonce has four bytes.
    EXPECT_THAT(ask(2, Operation::ping, {}, {}, 7), ElementsAre(Sent{2, number(7).substr(0, 4)}));
    EXPECT_THAT(ask(2, Operation::validate), IsEmpty());
}

// torchrun's rendezvous is built on these four answers of COMPARE_SET.
TEST_F(KeyValuesTest, ComparesAndSets) {
    const auto compare_set = [&](const std::string& expected, const std::string& desired) {
        return ask(1, Operation::compare_set, {"/k"}, {expected, desired}).at(0).second;
    };
    // The key is missing: the expectation comes back, and nothing is stored.
    EXPECT_EQ(compare_set("old", "new"), text("old"));
    EXPECT_EQ(ask(1, Operation::check, {"/k"}).at(0).second, kNotReady);
    // A missing key matches an empty expectation.
    EXPECT_EQ(compare_set("", "new"), text("new"));
    // No match: the value that is there.
    EXPECT_EQ(compare_set("other", "newer"), text("new"));
    EXPECT_EQ(compare_set("new", "newer"), text("newer"));
}

// COMPARE_SET frees a waiting client if and only if the key exists afterwards. Of PyTorch's two
// servers one never does, so a worker waits for ever; the other one does even if the key still does
// not exist.
TEST_F(KeyValuesTest, CompareSetWakesOnlyWhenTheKeyIsThere) {
    ask(2, Operation::wait, {"/k"});
    EXPECT_THAT(ask(1, Operation::compare_set, {"/k"}, {"old", "new"}),
                ElementsAre(Sent{1, text("old")}));
    EXPECT_THAT(ask(1, Operation::compare_set, {"/k"}, {"", "new"}),
                ElementsAre(Sent{2, kStop}, Sent{1, text("new")}));
}

// Counters are text, read as strtoll reads: blanks in front and letters behind are ignored, and an
// overflow wraps around, as with PyTorch's servers. A text without a number closes the connection
// and changes nothing.
TEST_F(KeyValuesTest, Adds) {
    EXPECT_THAT(ask(1, Operation::add, {"/n"}, {}, 21), ElementsAre(Sent{1, number(21)}));
    EXPECT_THAT(ask(1, Operation::add, {"/n"}, {}, -24), ElementsAre(Sent{1, number(-3)}));
    EXPECT_EQ(get("/n"), text("-3"));
    set(1, "/n", " +12abc");
    EXPECT_THAT(ask(1, Operation::add, {"/n"}, {}, 1), ElementsAre(Sent{1, number(13)}));
    set(1, "/n", "9223372036854775807");
    EXPECT_THAT(ask(1, Operation::add, {"/n"}, {}, 1), ElementsAre(Sent{1, number(INT64_MIN)}));
    for (const char* bad : {"abc", "", " ", "+-5", "9223372036854775808"}) {
        set(1, "/n", bad);
        EXPECT_THAT(ask(1, Operation::add, {"/n"}, {}, 1), IsEmpty());
        EXPECT_THAT(error_, HasSubstr("ADD on key '/n', whose value is no 64-bit number")) << bad;
        EXPECT_EQ(get("/n"), text(bad));
    }
}

// APPEND creates the key, wakes those that wait for it, and extends it up to the largest value.
TEST_F(KeyValuesTest, Appends) {
    ask(2, Operation::wait, {"/k"});
    EXPECT_THAT(ask(1, Operation::append, {"/k"}, {"ab"}), ElementsAre(Sent{2, kStop}));
    ask(1, Operation::append, {"/k"}, {"cd"});
    EXPECT_EQ(get("/k"), text("abcd"));
    // 4 + 97 bytes pass the limit of 100. The value stays what it was.
    ask(1, Operation::append, {"/k"}, {std::string(97, 'x')});
    EXPECT_THAT(error_, HasSubstr("a value of 101 bytes, over the limit of 100"));
    EXPECT_EQ(get("/k"), text("abcd"));
}

// A large value is shared with the reply that a slow client still reads. An APPEND in this moment
// must not change the bytes on their way.
TEST(KeyValuesSharing, AppendLeavesValuesOnTheirWayAlone) {
    KeyValues store;
    std::vector<Reply> replies;
    // Above 4 KiB, so the store shares it.
    const std::string large(100'000, 'a');
    ASSERT_TRUE(store.handle(ConnectionId(1), {Operation::set, {"/k"}, {large}, 0}, replies));
    ASSERT_TRUE(store.handle(ConnectionId(1), {Operation::get, {"/k"}, {}, 0}, replies));
    ASSERT_TRUE(store.handle(ConnectionId(1), {Operation::append, {"/k"}, {"b"}, 0}, replies));
    EXPECT_EQ(replies.at(0).flat(), text(large));
    ASSERT_TRUE(store.handle(ConnectionId(1), {Operation::get, {"/k"}, {}, 0}, replies));
    EXPECT_EQ(replies.at(1).flat(), text(large + "b"));
}

// NCCL distributes its id so: every rank waits for one key, and one SET frees all of them, in the
// order in which they came. A second SET answers nobody.
TEST_F(KeyValuesTest, OneSetFreesAllWaiters) {
    for (const int waiter : {3, 1, 2})
        EXPECT_THAT(ask(waiter, Operation::wait, {"/id"}), IsEmpty());
    EXPECT_THAT(set(4, "/id", "x"), ElementsAre(Sent{3, kStop}, Sent{1, kStop}, Sent{2, kStop}));
    EXPECT_THAT(set(4, "/id", "y"), IsEmpty());
    EXPECT_EQ(store_.num_waits(), 0u);
}

// A wait on several keys ends with the last one. A key that arrived counts even if it is deleted
// before the others come, and a key that is named twice counts once.
TEST_F(KeyValuesTest, WaitsForAllKeys) {
    set(1, "/a", "1");
    EXPECT_THAT(ask(2, Operation::wait, {"/a", "/b", "/b", "/c"}), IsEmpty());
    EXPECT_THAT(set(1, "/b", "1"), IsEmpty());
    ask(1, Operation::delete_key, {"/b"});
    EXPECT_THAT(ask(1, Operation::multi_set, {"/d", "/c"}, {"1", "1"}),
                ElementsAre(Sent{2, kStop}));
    EXPECT_THAT(ask(2, Operation::wait, {"/a", "/c"}), ElementsAre(Sent{2, kStop}));
    // An empty list is complete at once.
    EXPECT_THAT(ask(2, Operation::wait), ElementsAre(Sent{2, kStop}));
    EXPECT_THAT(ask(2, Operation::check), ElementsAre(Sent{2, kReady}));
}

// CANCEL_WAIT is always answered, with and without a wait, so that a client knows where it stands.
// The wait that it took back is never answered.
TEST_F(KeyValuesTest, CancelsWaits) {
    ask(1, Operation::wait, {"/k"});
    EXPECT_THAT(ask(1, Operation::cancel_wait), ElementsAre(Sent{1, kCanceled}));
    EXPECT_THAT(set(2, "/k", "v"), IsEmpty());
    EXPECT_THAT(ask(1, Operation::cancel_wait), ElementsAre(Sent{1, kCanceled}));
}

// torch 1.13 gives up a wait without a word and then starts another. The old key must not end the
// new wait.
TEST_F(KeyValuesTest, ANewWaitReplacesTheOld) {
    ask(1, Operation::wait, {"/a"});
    ask(1, Operation::wait, {"/b"});
    EXPECT_THAT(set(2, "/a", "v"), IsEmpty());
    EXPECT_THAT(set(2, "/b", "v"), ElementsAre(Sent{1, kStop}));
}

// A closed connection gets no answer any more; its wait and its watch are gone. The server may
// report the end twice.
TEST_F(KeyValuesTest, ForgetsClosedConnections) {
    ask(1, Operation::wait, {"/a", "/b"});
    ask(2, Operation::wait, {"/a"});
    ask(1, Operation::watch_key, {"/a"});
    store_.closed(id(1));
    store_.closed(id(1));
    EXPECT_THAT(set(3, "/a", "v"), ElementsAre(Sent{2, kStop}));
    EXPECT_EQ(store_.num_waits(), 0u);
}

// First in, first out. A queue has a name space of its own: it may have the name of a key, it does
// not count as one, and DELETE_KEY does not touch it. But CHECK and WAIT see it, so a client can
// wait for an element. POP gives the length before it.
TEST_F(KeyValuesTest, Queues) {
    EXPECT_THAT(ask(1, Operation::queue_pop, {"/q"}), ElementsAre(Sent{1, number(0)}));
    ask(1, Operation::queue_push, {"/q"}, {"a"});
    ask(1, Operation::queue_push, {"/q"}, {""});
    EXPECT_THAT(ask(1, Operation::queue_len, {"/q"}), ElementsAre(Sent{1, number(2)}));
    EXPECT_THAT(ask(1, Operation::check, {"/q"}), ElementsAre(Sent{1, kReady}));
    EXPECT_THAT(ask(1, Operation::wait, {"/q"}), ElementsAre(Sent{1, kStop}));
    EXPECT_THAT(ask(1, Operation::num_keys), ElementsAre(Sent{1, number(0)}));
    EXPECT_THAT(ask(1, Operation::delete_key, {"/q"}), ElementsAre(Sent{1, number(0)}));
    EXPECT_THAT(ask(1, Operation::queue_pop, {"/q"}),
                ElementsAre(Sent{1, number(2)}, Sent{1, text("a")}));
    EXPECT_THAT(ask(1, Operation::queue_pop, {"/q"}),
                ElementsAre(Sent{1, number(1)}, Sent{1, text("")}));
    EXPECT_THAT(ask(1, Operation::check, {"/q"}), ElementsAre(Sent{1, kNotReady}));
}

// One element frees one waiting client, since the others have nothing to fetch. PyTorch's own
// server can free the same client a second time, out of another wait.
TEST_F(KeyValuesTest, APushFreesOneWaiterOnce) {
    ask(1, Operation::wait, {"/q"});
    ask(2, Operation::wait, {"/q"});
    EXPECT_THAT(ask(3, Operation::queue_push, {"/q"}, {"a"}), ElementsAre(Sent{1, kStop}));
    ask(1, Operation::wait, {"/other"});
    EXPECT_THAT(ask(3, Operation::queue_push, {"/q"}, {"b"}), ElementsAre(Sent{2, kStop}));
    EXPECT_THAT(ask(3, Operation::queue_push, {"/q"}, {"c"}), IsEmpty());
}

// The last to arrive frees all. The counter stays, so a late client passes at once. A client that
// gave up stays counted, as with PyTorch.
TEST_F(KeyValuesTest, Barriers) {
    EXPECT_THAT(ask(1, Operation::barrier, {"/b"}, {}, 3), IsEmpty());
    EXPECT_THAT(ask(2, Operation::barrier, {"/b"}, {}, 3), IsEmpty());
    EXPECT_THAT(ask(2, Operation::cancel_wait), ElementsAre(Sent{2, kCanceled}));
    EXPECT_THAT(ask(3, Operation::barrier, {"/b"}, {}, 3),
                ElementsAre(Sent{1, kStop}, Sent{3, kStop}));
    EXPECT_THAT(ask(2, Operation::barrier, {"/b"}, {}, 3), ElementsAre(Sent{2, kStop}));
    // Connection 2 has arrived twice.
    EXPECT_EQ(get("/b"), text("4"));
    // A text that is no counter closes the connection, as with ADD.
    set(1, "/b", "x");
    ask(1, Operation::barrier, {"/b"}, {}, 3);
    EXPECT_THAT(error_, HasSubstr("BARRIER on key '/b'"));
}

// A barrier's key is an ordinary one: any write to it, here an APPEND of nothing, ends the barrier
// and a WAIT on it. A barrier of nobody is complete at once.
TEST_F(KeyValuesTest, BarriersAndWaitsShareTheKey) {
    ask(1, Operation::wait, {"/b"});
    EXPECT_THAT(ask(2, Operation::barrier, {"/b"}, {}, 3), IsEmpty());
    EXPECT_THAT(ask(3, Operation::append, {"/b"}, {""}),
                ElementsAre(Sent{1, kStop}, Sent{2, kStop}));
    EXPECT_THAT(ask(1, Operation::barrier, {"/zero"}, {}, 0), ElementsAre(Sent{1, kStop}));
}

// The list is sorted and has the keys as they are stored, with PyTorch's "/" or without.
TEST_F(KeyValuesTest, CountsListsAndDeletes) {
    ask(1, Operation::add, {"init/"}, {}, 1);
    set(1, "/k", "v");
    EXPECT_THAT(ask(1, Operation::num_keys), ElementsAre(Sent{1, number(2)}));
    EXPECT_THAT(ask(1, Operation::list_keys),
                ElementsAre(Sent{1, number(2) + text("/k") + text("init/")}));
    EXPECT_THAT(ask(1, Operation::delete_key, {"/k"}), ElementsAre(Sent{1, number(1)}));
    EXPECT_THAT(ask(1, Operation::delete_key, {"/k"}), ElementsAre(Sent{1, number(0)}));
}

// WATCH_KEY of 1.13: registered at once (3), then a record for each change with the old and the new
// value: created (1), updated (0), deleted (2). A COMPARE_SET that does not match is no change.
TEST_F(KeyValuesTest, Watches) {
    EXPECT_THAT(ask(1, Operation::watch_key, {"/k"}), ElementsAre(Sent{1, "\x03"}));
    const auto record = [](int type, const std::string& before, const std::string& after) {
        return std::string(1, static_cast<char>(type)) + text("/k") + text(before) + text(after);
    };
    EXPECT_THAT(joined(set(2, "/k", "a")), ElementsAre(Sent{1, record(1, "", "a")}));
    EXPECT_THAT(joined(ask(2, Operation::append, {"/k"}, {"b"})),
                ElementsAre(Sent{1, record(0, "a", "ab")}));
    EXPECT_THAT(ask(2, Operation::compare_set, {"/k"}, {"no", "c"}),
                ElementsAre(Sent{2, text("ab")}));
    EXPECT_THAT(joined(ask(2, Operation::delete_key, {"/k"})),
                ElementsAre(Sent{1, record(2, "ab", "")}, Sent{2, number(1)}));
}

// Everything that a client can make the store keep counts. A request that would be too much is
// refused before anything changes; requests that need no room are still served, so workers can go
// on. When all is gone the count is 0 again.
TEST(KeyValuesMemory, CountsAndRefuses) {
    // Room for one value of 2000 bytes with its table entry, and not for a second one.
    KeyValues store(Limits{.max_memory = 4000});
    std::vector<Reply> replies;
    const auto ask = [&](Request request) {
        replies.clear();
        const Result<> served = store.handle(ConnectionId(1), std::move(request), replies);
        return served ? std::string() : served.error().sentence();
    };
    EXPECT_EQ(ask({Operation::set, {"/k"}, {std::string(2000, 'x')}, 0}), "");
    EXPECT_THAT(ask({Operation::set, {"/l"}, {std::string(2000, 'x')}, 0}),
                HasSubstr("over the limit of 4000; --store-max-memory raises it"));
    // 2000 bytes, twice the key "/k", and 256 for a table entry.
    EXPECT_THAT(ask({Operation::append, {"/k"}, {std::string(2000, 'x')}, 0}),
                HasSubstr("APPEND with 2260 bytes while the store holds"));
    // A WAIT with eight long keys fills tables, too.
    EXPECT_THAT(ask({Operation::wait, std::vector<std::string>(8, std::string(200, 'w')), {}, 0}),
                HasSubstr("WAIT with"));
    EXPECT_EQ(ask({Operation::get, {"/k"}, {}, 0}), "");
    const Reply on_its_way = replies.at(0);
    EXPECT_EQ(ask({Operation::delete_key, {"/k"}, {}, 0}), "");
    EXPECT_EQ(ask({Operation::wait, {"/a", "/b"}, {}, 0}), "");
    EXPECT_EQ(ask({Operation::queue_push, {"/q"}, {"e"}, 0}), "");
    EXPECT_EQ(ask({Operation::queue_pop, {"/q"}, {}, 0}), "");
    EXPECT_EQ(ask({Operation::watch_key, {"/w"}, {}, 0}), "");
    EXPECT_GT(store.memory().used, 0u);
    store.closed(ConnectionId(1));
    EXPECT_EQ(store.memory().used, 0u);
}

// A value that is deleted while a slow client still reads it occupies memory. It counts until the
// reply is gone.
TEST(KeyValuesMemory, CountsWhatIsOnItsWay) {
    KeyValues store;
    std::vector<Reply> replies;
    const std::string large(100'000, 'x');
    ASSERT_TRUE(store.handle(ConnectionId(1), {Operation::set, {"/k"}, {large}, 0}, replies));
    ASSERT_TRUE(store.handle(ConnectionId(1), {Operation::get, {"/k"}, {}, 0}, replies));
    ASSERT_TRUE(store.handle(ConnectionId(1), {Operation::delete_key, {"/k"}, {}, 0}, replies));
    EXPECT_GT(store.memory().used, large.size());
    replies.clear();
    EXPECT_EQ(store.memory().used, 0u);
}

// A short request can name the same value many times, or list many keys. The reply must stay within
// what may be queued, or one request of a few hundred bytes could fill the memory.
TEST(KeyValuesMemory, BoundsWhatOneRequestAnswers) {
    KeyValues store(Limits{.max_queued = 10'000});
    std::vector<Reply> replies;
    // 4000 bytes: below 4 KiB, so the reply would hold 100 copies.
    ASSERT_TRUE(store.handle(ConnectionId(1), {Operation::set, {"/k"}, {std::string(4000, 'x')}, 0},
                             replies));
    const auto all =
        store.handle(ConnectionId(1),
                     {Operation::multi_get, std::vector<std::string>(100, "/k"), {}, 0}, replies);
    ASSERT_FALSE(all);
    EXPECT_THAT(all.error().sentence(), HasSubstr("over the limit of 10000; --store-max-queued"));
    EXPECT_THAT(replies, IsEmpty());
    // 100 keys of about 210 bytes in the list are more than 10,000 bytes, too.
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(store.handle(
            ConnectionId(1), {Operation::set, {std::string(200, 'k') + std::to_string(i)}, {""}, 0},
            replies));
    }
    EXPECT_FALSE(store.handle(ConnectionId(1), {Operation::list_keys, {}, {}, 0}, replies));
}

// Keys and queues count together. What exists can still be changed when there is no room for more,
// and a deleted key makes room.
TEST(KeyValuesKeys, AreLimitedInAll) {
    Limits limits;
    limits.max_total_keys = 2;
    KeyValues store(limits);
    std::vector<Reply> replies;
    const auto ask = [&](Operation operation, std::vector<std::string> keys,
                         std::vector<std::string> values) {
        const Result<> served = store.handle(
            ConnectionId(1), Request{operation, std::move(keys), std::move(values), 1}, replies);
        return served ? "" : served.error().sentence();
    };
    EXPECT_EQ(ask(Operation::set, {"a"}, {"1"}), "");
    EXPECT_EQ(ask(Operation::queue_push, {"q"}, {"1"}), "");
    EXPECT_EQ(ask(Operation::queue_push, {"q"}, {"2"}), "");
    EXPECT_EQ(ask(Operation::add, {"a"}, {}), "");
    EXPECT_EQ(ask(Operation::set, {"b"}, {"1"}),
              "SET would make 3 keys in the store, over the limit of 2; --store-max-total-keys "
              "raises it");
    EXPECT_THAT(ask(Operation::multi_set, {"a", "b", "c"}, {"1", "1", "1"}), HasSubstr("4 keys"));
    EXPECT_THAT(ask(Operation::queue_push, {"a"}, {"1"}), HasSubstr("QUEUE_PUSH would make 3"));
    EXPECT_EQ(ask(Operation::wait, {"b", "c"}, {}), "") << "a wait makes no key";
    EXPECT_EQ(store.num_keys(), 1u) << "a refused request changes nothing";
    EXPECT_EQ(ask(Operation::delete_key, {"a"}, {}), "");
    EXPECT_EQ(ask(Operation::set, {"b"}, {"1"}), "");
}

}  // namespace
}  // namespace ddprun::store
