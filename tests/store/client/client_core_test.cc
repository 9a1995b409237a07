// The pure half of the store client, without sockets: the greeting, which finds out the dialect of
// the server, and one call. Each test is a script of the bytes that the client sends and receives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/client/client_state.h"
#include "store/client/tasks.h"

namespace ddprun::store {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Verdict = Greeting::Verdict;

// The answers to the greeting's requests: a 1 to each of four CANCEL_WAITs, and eight zeros, which
// are the number 0 or the length of an empty text.
const std::string kOnes(4, '\1');
const std::string kZeros(8, '\0');
// Three kinds of servers: one that answers GET of a missing key (ours, and PyTorch's on libuv), one
// that closes the connection at it (PyTorch's older back end), and one without CANCEL_WAIT (1.13).
const Peer kOurs{Dialect::torch_2_2, true};
const Peer kOlderBackEnd{Dialect::torch_2_2, false};
const Peer kOldest{Dialect::torch_1_13, false};
// The moment at which every call begins. The machine takes the time as an argument and reads no
// clock.
const Deadline kStart{};

// A request as torch 2.2 and later send it.
std::string wire(Operation operation, std::vector<std::string> keys = {}) {
    return encode({operation, std::move(keys), {}, 0});
}

std::string text(const std::string& value) {
    std::string bytes;
    put_text(bytes, value);
    return bytes;
}

// An old server reads bytes 1 to 8 of the greeting as the length of a key. The length must lie
// beyond any address space. Then the server closes the connection and stores nothing. A smaller one
// would make it wait for a key, or store one under a wrong name.
TEST(Greeting, IsHarmlessToOldServers) {
    const std::string opening = Greeting().output();
    const auto* length = reinterpret_cast<const unsigned char*>(opening.data() + 1);
    EXPECT_EQ(opening[0], 0);
    EXPECT_GT(get_little_endian(length, 8), std::uint64_t{1} << 57);
}

// The answer comes in two pieces, as TCP may deliver it. The greeting must not decide before the
// last byte.
TEST(Greeting, KnowsAServerThatAnswersAMissingKey) {
    Greeting greeting;
    EXPECT_EQ(greeting.received(kOnes + kZeros.substr(1)).value(), Verdict::more);
    EXPECT_EQ(greeting.received(std::string(1, '\0')).value(), Verdict::ready);
    EXPECT_EQ(greeting.peer(), kOurs);
}

// PyTorch's older back end answers the CANCEL_WAITs and closes at the GET. The client connects
// again without the GET, and remembers never to ask this server for a missing key.
TEST(Greeting, KnowsThePyTorchBackEndThatCloses) {
    Greeting greeting;
    // The opening with the GET is sent.
    (void)greeting.output();
    EXPECT_EQ(greeting.received(kOnes).value(), Verdict::more);
    EXPECT_EQ(greeting.ended(), Verdict::reconnect);
    EXPECT_EQ(greeting.output(), wire(Operation::validate) + std::string(4, '\x0c'));
    EXPECT_EQ(greeting.received(kOnes).value(), Verdict::ready);
    EXPECT_EQ(greeting.peer(), kOlderBackEnd);
}

// A server of 2.1 or older gives no answer to the greeting. The client then asks for the number of
// keys (code 6). Only 2.1 answers the CANCEL_WAIT (code 11) that follows.
TEST(Greeting, Knows21ByItsCancel) {
    Greeting greeting;
    greeting.ended();
    EXPECT_EQ(greeting.output(), "\x06");
    EXPECT_EQ(greeting.received(kZeros).value(), Verdict::more);
    EXPECT_EQ(greeting.output(), "\x0b");
    EXPECT_EQ(greeting.received("\1").value(), Verdict::ready);
    EXPECT_EQ(greeting.peer().dialect, Dialect::torch_2_1);
}

// 1.13 does not know CANCEL_WAIT and closes the connection. The client connects once more and
// confirms its finding with a request that 1.13 does know.
TEST(Greeting, Knows113ByTheEndAtACancel) {
    Greeting greeting;
    greeting.ended();
    EXPECT_EQ(greeting.received(kZeros).value(), Verdict::more);
    greeting.ended();
    EXPECT_EQ(greeting.output(), "\x06");
    EXPECT_EQ(greeting.received(kZeros).value(), Verdict::ready);
    EXPECT_EQ(greeting.peer(), kOldest);
}

// A server with a full backlog may reset connections. Such an end says nothing about the dialect,
// so the greeting starts from the beginning. Otherwise a busy new server would be taken for an old
// one.
TEST(Greeting, BelievesNoSilence) {
    Greeting greeting;
    greeting.ended();
    // The first end led to the question for old servers. There, silence has a meaning, too.
    EXPECT_TRUE(greeting.impatient());
    greeting.ended();
    EXPECT_EQ(greeting.began_anew(), 1);
    EXPECT_EQ(greeting.output(), Greeting().output());
}

// Another service listens on the port. No retry can help, so the error says what is wrong.
TEST(Greeting, SaysWhatIsNoStore) {
    Greeting greeting;
    EXPECT_EQ(greeting.received("HTTP/1.1 400").error().code(), ErrorCode::malformed);
}

// One call against a server that the test plays. A step is what the call sends or what then comes.
class CallScript : public testing::Test {
  protected:
    // Starts another call; a test may play several.
    void begin(Task task, const Peer& peer, Timeout timeout = 5s) {
        call_.emplace(std::move(task), peer, timeout, kStart);
    }
    void expect_sent(const std::string& bytes) {
        EXPECT_EQ(call_->output(), bytes);
        call_->sent();
    }
    // Delivers bytes as a socket does: never more at a time than the call has room for. A call that
    // is done takes no more.
    void comes(const std::string& bytes) {
        for (std::size_t at = 0; at < bytes.size() && !call_->done();) {
            const std::span<char> room = call_->room();
            const std::size_t count = bytes.copy(room.data(), room.size(), at);
            call_->received(count, kStart);
            at += count;
        }
    }
    std::optional<Call> call_;
};

// CHECK and GET travel together. PyTorch's own client needs two round trips for this.
TEST_F(CallScript, GetOfAKeyThatIsThereIsOneRoundTrip) {
    begin(tasks::get("k").task, kOurs);
    expect_sent(wire(Operation::check, {"/k"}) + wire(Operation::get, {"/k"}));
    // CHECK says ready, and the value follows.
    comes('\0' + text("value"));
    ASSERT_TRUE(call_->done());
    EXPECT_EQ(call_->result().value().texts, std::vector<std::string>{"value"});
}

// The key is missing, so the call waits. WAIT travels alone, because the server would answer a
// later request before it. The value is empty in the end: an empty value must not look like a
// missing key.
TEST_F(CallScript, GetWaitsAndLooksAgain) {
    begin(tasks::get("k").task, kOurs);
    (void)call_->output();
    // CHECK says not ready, and GET answers with an empty text.
    comes('\1' + kZeros);
    expect_sent(wire(Operation::wait, {"/k"}));
    comes(std::string(1, '\0'));
    expect_sent(wire(Operation::check, {"/k"}) + wire(Operation::get, {"/k"}));
    comes('\0' + text(""));
    EXPECT_EQ(call_->result().value().texts, std::vector<std::string>{""});
}

// This server closes the connection at a GET of a missing key, so the call waits before it asks.
TEST_F(CallScript, GetFromTheOlderBackEndWaitsFirst) {
    begin(tasks::get("k").task, kOlderBackEnd);
    expect_sent(wire(Operation::wait, {"/k"}));
    comes(std::string(1, '\0'));
    expect_sent(wire(Operation::get, {"/k"}));
    comes(text("v"));
    EXPECT_EQ(call_->result().value().texts, std::vector<std::string>{"v"});
}

// A wait that ends by time must leave the connection usable. The call takes the wait back with
// CANCEL_WAIT. Otherwise the late answer would be read as the answer to the next request.
TEST_F(CallScript, AWaitIsTakenBack) {
    begin(tasks::wait({"k"}).task, kOurs, 30ms);
    expect_sent(wire(Operation::wait, {"/k"}));
    EXPECT_EQ(call_->deadline(), kStart + 30ms);
    call_->timed_out(kStart);
    expect_sent(wire(Operation::cancel_wait));
    comes("\1");
    EXPECT_EQ(call_->result().error().sentence(), "key 'k' was not set within 0.03 s");
    EXPECT_FALSE(call_->spoiled());
}

// The key arrives while CANCEL_WAIT is on its way. Both answers come, in one read or in two. The
// user gets the key, and no timeout: the key does exist.
TEST_F(CallScript, ACancelThatCameTooLateIsASuccess) {
    for (const bool together : {false, true}) {
        begin(tasks::wait({"k"}).task, kOurs, 30ms);
        (void)call_->output();
        call_->timed_out(kStart);
        (void)call_->output();
        comes(std::string(1, '\0') + (together ? "\1" : ""));
        if (!together) {
            EXPECT_FALSE(call_->done());
            comes("\1");
        }
        EXPECT_TRUE(call_->result());
    }
}

// 1.13 cannot take a wait back. Its answer may come at any later time and would be read as that of
// another request, so the connection goes.
TEST_F(CallScript, WithoutCancelTheConnectionIsDropped) {
    begin(tasks::get("k").task, kOldest, 30ms);
    (void)call_->output();
    call_->timed_out(kStart);
    EXPECT_TRUE(call_->done());
    EXPECT_TRUE(call_->dropped());
    EXPECT_EQ(call_->result().error().code(), ErrorCode::timed_out);
}

// An old server closes the connection at an unknown operation. The client refuses first, and the
// sentence names the version, so the user knows what to update.
TEST_F(CallScript, WhatTheServerDoesNotKnowIsNotSent) {
    begin(tasks::append("log", "a").task, kOldest);
    EXPECT_FALSE(call_->has_output());
    EXPECT_EQ(call_->result().error().sentence(),
              "APPEND of 'log': a store of PyTorch 1.13 or 2.0 does not know this operation");
}

// A garbled length of 0x7f7f7f7f7f7f7f7f bytes is refused before any memory is allocated for it.
TEST_F(CallScript, AWrongLengthCostsNothing) {
    begin(tasks::compare_set("k", "", "v").task, kOurs);
    (void)call_->output();
    comes(std::string(8, '\x7f'));
    EXPECT_TRUE(call_->spoiled());
    EXPECT_THAT(call_->result().error().sentence(), HasSubstr("over the limit"));
}

// A second byte after the answer to CHECK means that the two sides disagree about the stream. The
// next answer would be wrong, so the connection must not be used again.
TEST_F(CallScript, BytesThatNobodyAskedForAreAnError) {
    begin(tasks::check({"k"}).task, kOurs);
    (void)call_->output();
    comes(std::string(2, '\0'));
    EXPECT_TRUE(call_->spoiled());
}

// The reader's buffer has 16 KiB. Values of about that size end in it or just behind it, one of
// 40,000 bytes is received directly into its place, and 20 MiB need more than one allocation of 16
// MiB.
TEST_F(CallScript, ValuesOfAllSizesArrive) {
    for (const std::size_t size : {16366u, 16367u, 16384u, 40000u, 20u << 20}) {
        begin(tasks::get("k").task, kOurs);
        (void)call_->output();
        const std::string value(size, 'x');
        comes('\0' + text(value));
        ASSERT_TRUE(call_->done());
        EXPECT_TRUE(call_->result().value().texts.at(0) == value) << size;
    }
}

// A SET has no answer, so a lost connection may have lost it. A client that reconnects and reads on
// would never notice. Only reading calls reconnect, and only if an answer has followed every write.
TEST(ClientState, OpensANewConnectionOnlyWhereNothingIsLost) {
    ClientState state("::1", 29500, Dialect::unknown);
    EXPECT_EQ(state.address(), "[::1]:29500");
    // Connects and loses the connection during this call.
    const auto lose = [&](Task task) {
        state.connected(kOurs);
        Call call(std::move(task), kOurs, 5s, kStart);
        call.lost(Error(ErrorCode::closed, "gone"));
        state.note(Operation::get, call, call.result());
    };
    lose(tasks::get("k").task);
    EXPECT_FALSE(state.is_connected());
    EXPECT_TRUE(state.may_repeat(tasks::get("k").task));
    // An ADD would count twice, and a SET could overwrite a newer value.
    EXPECT_FALSE(state.may_connect(tasks::add("n", 1).task));
    EXPECT_FALSE(state.may_connect(tasks::set("k", "v").task));

    state.connected(kOurs);
    // The same loss, but a SET was sent before and nothing has been answered since.
    Call set(tasks::set("k", "v").task, kOurs, 5s, kStart);
    set.sent();
    state.note(Operation::set, set, set.result());
    Call get(tasks::get("k").task, kOurs, 5s, kStart);
    get.lost(Error(ErrorCode::closed, "gone"));
    state.note(Operation::get, get, get.result());
    EXPECT_FALSE(state.may_connect(tasks::get("k").task));
    EXPECT_THAT(state.refusal().sentence(), HasSubstr("may not have arrived"));
}

}  // namespace
}  // namespace ddprun::store
