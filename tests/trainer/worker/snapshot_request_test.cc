// The request for a snapshot, as a file (snapshot_request.h).
#include "trainer/worker/snapshot_request.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <thread>

#include "tests/trainer/ranks.h"

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Asks until there is an answer, or 10 s have passed: the file is looked for at most ten times a
// second.
std::int64_t asked_soon(SnapshotRequest& request) {
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (request.asked() == 0 && Clock::now() < deadline)
        std::this_thread::sleep_for(milliseconds(5));
    return request.asked();
}

TEST(SnapshotRequest, TellsTheNumberAndRemovesTheFile) {
    test::TemporaryFolder folder;
    const auto file = folder.path() / "snapshot.json";
    SnapshotRequest request(file);
    EXPECT_EQ(request.asked(), 0);
    test::write_all(file, R"({"by":"alice","number":5000001})");
    EXPECT_EQ(asked_soon(request), 5000001);
    EXPECT_TRUE(std::filesystem::exists(file)) << "it is not begun yet";
    request.begun(5000001);
    EXPECT_FALSE(std::filesystem::exists(file));
    EXPECT_EQ(request.asked(), 0);
    test::write_all(file, R"({"number":5000002})");
    EXPECT_EQ(asked_soon(request), 5000002) << "a new request makes it again";
}

// All ranks have begun it by the file of another node. This one comes late.
TEST(SnapshotRequest, AFileThatComesLateIsRemovedOnly) {
    test::TemporaryFolder folder;
    const auto file = folder.path() / "snapshot.json";
    SnapshotRequest request(file);
    request.begun(7);
    test::write_all(file, R"({"number":7})");
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (std::filesystem::exists(file) && Clock::now() < deadline) {
        EXPECT_EQ(request.asked(), 0);
        std::this_thread::sleep_for(milliseconds(5));
    }
    EXPECT_FALSE(std::filesystem::exists(file));
}

// The next request came while this one was begun.
TEST(SnapshotRequest, ANewerRequestStays) {
    test::TemporaryFolder folder;
    const auto file = folder.path() / "snapshot.json";
    SnapshotRequest request(file);
    test::write_all(file, R"({"number":8})");
    request.begun(7);
    EXPECT_TRUE(std::filesystem::exists(file));
    EXPECT_EQ(request.asked(), 8);
}

// Whatever lies there, the training neither waits for it nor obeys it.
TEST(SnapshotRequest, WhatIsNoRequestIsNone) {
    test::TemporaryFolder folder;
    for (const char* text : {"", "{", "[1]", R"({"number":"1"})", R"({"number":-1})", "{}"}) {
        const auto file = folder.path() / "file.json";
        test::write_all(file, text);
        EXPECT_EQ(SnapshotRequest(file).asked(), 0) << text;
    }
    const auto fifo = folder.path() / "fifo.json";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    EXPECT_EQ(SnapshotRequest(fifo).asked(), 0);
    EXPECT_EQ(SnapshotRequest("").asked(), 0);
}

}  // namespace
}  // namespace ddprun::trainer
