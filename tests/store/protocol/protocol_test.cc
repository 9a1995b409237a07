// The wire format of the store, without sockets: requests to bytes and back, in every dialect, in
// every way in which TCP may cut them. Also garbage, limits, and what an incomplete request costs.
#include "store/protocol/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::store {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

// Bytes by hand, where encoder and decoder could otherwise agree on a wrong format.
std::string bytes(std::initializer_list<int> list) { return {list.begin(), list.end()}; }
std::string u64(std::uint64_t number) {
    std::string out;
    put_u64(out, number);
    return out;
}
std::string code(int value) { return std::string(1, static_cast<char>(value)); }
// A length and the bytes, as every key and value travels.
std::string text(const std::string& value) { return u64(value.size()) + value; }

// VALIDATE: code 0 and the magic number of torch 2.2 and later, little endian.
const std::string kGreeting = bytes({0x00, 0xCE, 0xF7, 0x85, 0x3C});

// One of each operation, with the edges: empty keys, empty values, empty lists, a negative number,
// a nonce with its top bit set, and a value that does not fit into one TCP packet.
std::vector<Request> every_request_since_22() {
    return {
        {Operation::validate, {}, {}, 0},
        {Operation::ping, {}, {}, 0xFEDCBA98},
        {Operation::set, {"/k"}, {"v"}, 0},
        {Operation::set, {""}, {""}, 0},
        {Operation::compare_set, {"/k"}, {"", "x"}, 0},
        {Operation::get, {"/k"}, {}, 0},
        {Operation::add, {"init/"}, {}, -3},
        {Operation::check, {"/a", "/b"}, {}, 0},
        {Operation::check, {}, {}, 0},
        {Operation::wait, {"/a"}, {}, 0},
        {Operation::num_keys, {}, {}, 0},
        {Operation::delete_key, {"/k"}, {}, 0},
        {Operation::append, {"/k"}, {std::string(5000, 'z')}, 0},
        {Operation::multi_get, {"/a", "", "/c"}, {}, 0},
        {Operation::multi_set, {"/a", "/b"}, {"1", ""}, 0},
        {Operation::multi_set, {}, {}, 0},
        {Operation::cancel_wait, {}, {}, 0},
        {Operation::queue_push, {"/q"}, {"e"}, 0},
        {Operation::queue_pop, {"/q"}, {}, 0},
        {Operation::queue_len, {"/q"}, {}, 0},
        {Operation::list_keys, {}, {}, 0},
        {Operation::barrier, {"/b"}, {}, 8},
    };
}

// The defaults. No request here comes near them. It lives longer than every Decoder, which only
// refers to it.
const Limits kNoLimits;

// The operations that 1.13 and 2.1 both have, with the same codes. They do not tell the dialects
// apart.
std::vector<Request> every_common_old_request() {
    return {
        {Operation::set, {"/k"}, {"v"}, 0},      {Operation::compare_set, {"/k"}, {"a", "b"}, 0},
        {Operation::get, {"/k"}, {}, 0},         {Operation::add, {"init/"}, {}, 1},
        {Operation::check, {"/a", "/b"}, {}, 0}, {Operation::wait, {"/a"}, {}, 0},
        {Operation::num_keys, {}, {}, 0},
    };
}

std::string encoded(const std::vector<Request>& requests, Dialect dialect) {
    std::string out;
    for (const Request& request : requests) out += encode(request, dialect);
    return out;
}

// Feeds the bytes in pieces of one size. `false`: the pieces are cuts of TCP and not pauses of the
// sender, so nothing may be concluded from their ends.
std::vector<Request> decoded(Decoder& decoder, const std::string& sent, std::size_t piece) {
    std::vector<Request> requests;
    for (std::size_t at = 0; at < sent.size(); at += piece) {
        const Result<> fed = decoder.feed(sent.substr(at, piece), false, requests);
        EXPECT_TRUE(fed) << fed.error();
    }
    EXPECT_FALSE(decoder.inside_request());
    return requests;
}

// The sentence with which these bytes are refused when they come in one burst.
std::string error_of(const std::string& sent, Limits limits = {}) {
    Decoder decoder(limits);
    std::vector<Request> requests;
    const Result<> fed = decoder.feed(sent, true, requests);
    if (fed) return "no error";
    EXPECT_EQ(fed.error().code(), ErrorCode::malformed);
    return fed.error().sentence();
}

// The examples of PyTorch's own code, captured from torch 2.15, byte for byte.
TEST(Protocol, SendsWhatPyTorchSends) {
    EXPECT_EQ(encode({Operation::validate, {}, {}, 0}), kGreeting);
    EXPECT_EQ(encode({Operation::ping, {}, {}, 0x1234}), bytes({0x0D, 0x34, 0x12, 0, 0}));
    EXPECT_EQ(encode({Operation::add, {"init/"}, {}, 1}), code(0x04) + text("init/") + u64(1));
    EXPECT_EQ(encode({Operation::add, {"init/"}, {}, 1}, Dialect::torch_2_1)[0], '\x03');
    EXPECT_EQ(encode({Operation::set, {"/k"}, {"v"}, 0}), code(0x01) + text("/k") + text("v"));
    EXPECT_EQ(encode({Operation::wait, {"/k"}, {}, 0}), code(0x06) + u64(1) + text("/k"));
    EXPECT_EQ(encode({Operation::cancel_wait, {}, {}, 0}), "\x0C");
    EXPECT_EQ(encode({Operation::cancel_wait, {}, {}, 0}, Dialect::torch_2_1), "\x0B");
    EXPECT_EQ(encode({Operation::barrier, {"/b"}, {}, 2}), code(0x12) + text("/b") + u64(2));
    EXPECT_EQ(encode({Operation::list_keys, {}, {}, 0}), "\x11");
}

// TCP keeps no boundaries. Any cut of any mix of requests must give the same requests: single
// bytes, pieces that cut numbers (3, 7), and everything at once.
TEST(Protocol, ReadsTheNewestDialectInPiecesOfAnySize) {
    const auto requests = every_request_since_22();
    const std::string sent = encoded(requests, Dialect::torch_2_2);
    for (const std::size_t piece : {1u, 2u, 3u, 7u, 64u, 4096u, 1u << 20}) {
        Decoder decoder(kNoLimits);
        EXPECT_THAT(decoded(decoder, sent, piece), ElementsAreArray(requests)) << piece;
        EXPECT_EQ(decoder.dialect(), Dialect::torch_2_2);
    }
}

// The two old dialects start without a greeting. The first request here is a SET, whose code 0
// looks like a greeting until four more bytes have come.
TEST(Protocol, ReadsOldDialectsInPiecesOfAnySize) {
    const auto requests = every_common_old_request();
    for (const Dialect dialect : {Dialect::torch_1_13, Dialect::torch_2_1}) {
        const std::string sent = encoded(requests, dialect);
        for (const std::size_t piece : {1u, 3u, 4096u}) {
            Decoder decoder(kNoLimits);
            EXPECT_THAT(decoded(decoder, sent, piece), ElementsAreArray(requests)) << piece;
            EXPECT_EQ(decoder.dialect(), Dialect::legacy);
        }
    }
}

// ddprun may know the version of its workers. Then codes 7 and 8, which mean different things in
// 1.13 and 2.1, need no guess.
TEST(Protocol, TakesTheOldDialectItIsTold) {
    const std::vector<Request> old{{Operation::watch_key, {"/w"}, {}, 0},
                                   {Operation::delete_key, {"/k"}, {}, 0}};
    Decoder decoder(kNoLimits, Dialect::torch_1_13);
    EXPECT_THAT(decoded(decoder, encoded(old, Dialect::torch_1_13), 1), ElementsAreArray(old));
    std::vector<Request> none;
    // Code 9 exists in 2.1 only.
    EXPECT_FALSE(decoder.feed(code(0x09), false, none));

    const std::vector<Request> newer{{Operation::delete_key, {"/k"}, {}, 0},
                                     {Operation::append, {"/k"}, {"v"}, 0},
                                     {Operation::multi_get, {"/a"}, {}, 0},
                                     {Operation::multi_set, {"/a"}, {"1"}, 0},
                                     {Operation::cancel_wait, {}, {}, 0}};
    Decoder other(kNoLimits, Dialect::torch_2_1);
    EXPECT_THAT(decoded(other, encoded(newer, Dialect::torch_2_1), 1), ElementsAreArray(newer));
}

// torch 1.13 deletes with code 8 and waits for the answer, so nothing follows the key. A decoder
// that waits for APPEND's value here makes that worker hang.
TEST(Protocol, TakesCode8ThatStopsAfterItsKeyForADelete) {
    Decoder decoder(kNoLimits);
    std::vector<Request> requests;
    ASSERT_TRUE(decoder.feed(code(0x08) + text("/gone"), true, requests));
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0], (Request{Operation::delete_key, {"/gone"}, {}, 0}));
    EXPECT_EQ(decoder.dialect(), Dialect::torch_1_13);
    // The code may also come alone in its packet, before the rest.
    Decoder other(kNoLimits);
    ASSERT_TRUE(other.feed("\x08", true, requests));
    ASSERT_TRUE(other.feed(text("/gone"), true, requests));
    EXPECT_EQ(requests.at(1), requests.at(0));
}

// torch 2.1 appends with code 8, in one piece. The dialect is known from then on, so its code 7
// deletes even when it comes alone.
TEST(Protocol, TakesCode8ThatGoesOnForAnAppend) {
    Decoder decoder(kNoLimits);
    std::vector<Request> requests;
    ASSERT_TRUE(decoder.feed(code(0x08) + text("/k") + text("more"), true, requests));
    ASSERT_TRUE(decoder.feed("\x07", true, requests));
    ASSERT_TRUE(decoder.feed(text("/k"), true, requests));
    ASSERT_EQ(requests.size(), 2u);
    EXPECT_EQ(requests[0], (Request{Operation::append, {"/k"}, {"more"}, 0}));
    EXPECT_EQ(requests[1].operation, Operation::delete_key);
    EXPECT_EQ(decoder.dialect(), Dialect::torch_2_1);
}

// 1.13 sends the code of a request in a packet of its own, 2.1 does not. So a lone code 7 is 1.13's
// WATCH_KEY; together with its key it is 2.1's DELETE_KEY.
TEST(Protocol, TellsWatchFromDeleteByHowTheyAreSent) {
    std::vector<Request> requests;
    Decoder old(kNoLimits);
    ASSERT_TRUE(old.feed("\x07", true, requests));
    ASSERT_TRUE(old.feed(text("/k"), true, requests));
    Decoder newer(kNoLimits);
    ASSERT_TRUE(newer.feed(code(0x07) + text("/k"), true, requests));
    ASSERT_EQ(requests.size(), 2u);
    EXPECT_EQ(requests[0].operation, Operation::watch_key);
    EXPECT_EQ(requests[1].operation, Operation::delete_key);
}

// A browser, a TLS client, a greeting of another magic number, an unknown code, a second greeting:
// the sentence must let an operator recognize the program that called the wrong port.
TEST(Protocol, NamesWhatIsWrongWithStrangers) {
    EXPECT_THAT(error_of("GET / HTTP/1.1\r\n\r\n"),
                HasSubstr("operation code 71 without a greeting"));
    EXPECT_THAT(error_of(bytes({0x16, 3, 1, 2, 0})), HasSubstr("operation code 22"));
    EXPECT_THAT(error_of(bytes({0x00, 0xDE, 0xAD, 0xBE, 0xEF})), HasSubstr("magic 0xEFBEADDE"));
    EXPECT_THAT(error_of(kGreeting + "\x13"), HasSubstr("operation code 19 is unknown"));
    EXPECT_THAT(error_of(kGreeting + kGreeting), HasSubstr("second greeting"));
}

// A half-sent request occupies memory, so it counts against --store-max-memory as far as it has
// come. Otherwise workers that send only the beginnings of large values could exhaust the host.
TEST(Protocol, CountsWhatIsUnderWay) {
    // Room for one value of 2 MiB, and not for two.
    Memory memory{.limit = 3 << 20, .used = 0};
    std::vector<Request> out;
    {
        Decoder decoder(kNoLimits, Dialect::legacy, &memory);
        EXPECT_EQ(decoder.progress(), "the greeting");
        const std::string set = kGreeting + code(0x01) + text("/k") + u64(2 << 20);
        ASSERT_TRUE(decoder.feed(set, true, out));
        // Up to 1 MiB is allocated on the sender's word; more when that much has come.
        EXPECT_LT(memory.used, 2u << 20);
        ASSERT_TRUE(decoder.feed(std::string((2 << 20) - 1, 'x'), true, out));
        EXPECT_GT(memory.used, 2u << 20);
        EXPECT_EQ(decoder.progress(), "SET, 2097151 of 2097152 bytes of its value");
        // A second connection begins the same value.
        Decoder other(kNoLimits, Dialect::legacy, &memory);
        const Result<> refused = other.feed(set, true, out);
        ASSERT_FALSE(refused);
        EXPECT_THAT(refused.error().sentence(), HasSubstr("--store-max-memory raises it"));
        // The first request becomes complete: from here on the store counts it, not the decoder.
        ASSERT_TRUE(decoder.feed("x", true, out));
        EXPECT_FALSE(decoder.inside_request());
        // Half a key, and then the connection goes.
        ASSERT_TRUE(decoder.feed(code(0x01) + u64(5) + "abc", true, out));
        EXPECT_GT(memory.used, 0u);
    }
    EXPECT_EQ(memory.used, 0u);
}

// A length is judged when it is read. Nothing of what it announces has to come, and no memory is
// allocated for it. Every sentence names the option that raises the limit.
TEST(Protocol, RefusesLengthsOverTheLimits) {
    const Limits limits{.max_key = 8, .max_value = 100, .max_keys = 3, .max_request = 150};
    const std::uint64_t huge = ~std::uint64_t{0};
    EXPECT_THAT(
        error_of(kGreeting + code(0x03) + u64(9), limits),
        HasSubstr("GET with 9 bytes of key, over the limit of 8; --store-max-key raises it"));
    EXPECT_THAT(error_of(kGreeting + code(0x03) + u64(huge)), HasSubstr("over the limit of 65536"));
    EXPECT_THAT(error_of(kGreeting + code(0x01) + text("/k") + u64(101), limits),
                HasSubstr("SET with 101 bytes of value, over the limit of 100; --store-max-value"));
    EXPECT_THAT(error_of(kGreeting + code(0x06) + u64(4), limits),
                HasSubstr("over the limit of 3"));
    EXPECT_THAT(error_of(kGreeting + code(0x0B) + u64(huge)),
                HasSubstr("keys, over the limit of 1048576; --store-max-keys"));
    // Each text is below its own limit; the sum (2 + 90 + 90) is not.
    EXPECT_THAT(error_of(kGreeting + code(0x02) + text("/k") + text(std::string(90, 'a')) + u64(90),
                         limits),
                HasSubstr("COMPARE_SET with 182 bytes of keys and values, over the limit of 150; "
                          "--store-max-request"));
    // Exactly at the limit.
    EXPECT_EQ(error_of(kGreeting + code(0x03) + text("12345678"), limits), "no error");
}

// A worker may SET a key and then send garbage, or die. The SET was complete, so it counts.
TEST(Protocol, HandsOutWhatCameBeforeTheGarbage) {
    Decoder decoder(kNoLimits);
    std::vector<Request> requests;
    const std::string sent = kGreeting + encode({Operation::set, {"/k"}, {"v"}, 0}) + "\x63";
    EXPECT_FALSE(decoder.feed(sent, true, requests));
    // The greeting and the SET.
    ASSERT_EQ(requests.size(), 2u);
    EXPECT_EQ(requests[1].keys.at(0), "/k");
}

// One wrong byte anywhere in a valid stream is either understood or refused. It never crashes the
// decoder and never makes it allocate without bound.
TEST(Protocol, SurvivesEveryChangedByte) {
    const std::string good = encoded(every_request_since_22(), Dialect::torch_2_2);
    // The first 400 bytes hold the requests up to APPEND, whose long text follows.
    for (std::size_t at = 0; at < std::min<std::size_t>(good.size(), 400); ++at) {
        // The lowest bit, the highest bit, all bits.
        for (const int change : {0x01, 0x80, 0xFF}) {
            std::string bad = good;
            bad[at] = static_cast<char>(bad[at] ^ change);
            Decoder decoder(kNoLimits);
            std::vector<Request> requests;
            (void)decoder.feed(bad, true, requests);
            EXPECT_LE(requests.size(), bad.size());
        }
    }
}

// The replies byte for byte. A large value is shared with the store and not copied: thousands of
// workers may fetch the same one at once.
TEST(Protocol, EncodesReplies) {
    const ConnectionId to{1};
    EXPECT_EQ(status_reply(to, Status::not_ready).flat(), "\x01");
    EXPECT_EQ(number_reply(to, -1).flat(), std::string(8, '\xFF'));
    EXPECT_EQ(nonce_reply(to, 0x1234).flat(), bytes({0x34, 0x12, 0, 0}));
    EXPECT_EQ(value_reply(to, nullptr).flat(), u64(0));
    EXPECT_EQ(value_reply(to, std::make_shared<std::string>("v")).flat(), text("v"));
    const auto large = std::make_shared<std::string>(1 << 20, 'x');
    const Reply reply = value_reply(to, large);
    EXPECT_EQ(reply.value, large);
    EXPECT_EQ(reply.bytes, u64(1 << 20));
}

}  // namespace
}  // namespace ddprun::store
