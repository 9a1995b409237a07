// Files that are either complete or not there, on a real file system with several writers at a
// time.
#include "trainer/snapshot/format/durable_file.h"

#include <gmock/gmock.h>

#include <thread>

#include "tests/trainer/ranks.h"

namespace ddprun::trainer {
namespace {

// Two jobs use one folder by mistake and write one path at the same time. Each write succeeds, and
// the file is always one of the two, never a mixture. The sizes differ, so the rest of the longer
// text would show. 150 turns give them many chances to meet.
TEST(DurableFile, IsWholeThoughTwoWriteIt) {
    test::TemporaryFolder folder;
    const std::string path = folder.path() / "shared";
    const std::string texts[] = {std::string(9000, 'a'), std::string(200, 'b')};
    int failures[2] = {};
    auto write = [&](std::size_t which) {
        for (int turn = 0; turn < 150; ++turn)
            failures[which] += write_durably(path, texts[which]) ? 0 : 1;
    };
    std::thread other(write, 1);
    write(0);
    other.join();
    EXPECT_THAT(failures, testing::Each(0));
    EXPECT_THAT(test::read_all(path), testing::AnyOf(texts[0], texts[1]));
    // No temporary file is left.
    EXPECT_EQ(list_folder(folder)->size(), 1u);
}

// With Old::kept, of several that write at once exactly one succeeds. The others learn that they
// came too late. The record of a folder's owner depends on it.
TEST(DurableFile, KeepsTheOldOne) {
    test::TemporaryFolder folder;
    const std::string path = folder.path() / "shared";
    const auto text_of = [](std::size_t i) { return std::string(5000, "abcd"[i]); };
    std::vector<Result<void>> done(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < done.size(); ++i)
        threads.emplace_back([&, i] { done[i] = write_durably(path, text_of(i), Old::kept); });
    for (auto& thread : threads) thread.join();
    int succeeded = 0;
    for (std::size_t i = 0; i < done.size(); ++i) {
        if (done[i]) {
            ++succeeded;
            EXPECT_EQ(test::read_all(path), text_of(i));
        } else {
            EXPECT_EQ(done[i].error().code(), ErrorCode::exists) << done[i].error();
        }
    }
    EXPECT_EQ(succeeded, 1);
    EXPECT_EQ(list_folder(folder)->size(), 1u);
}

TEST(DurableFile, SaysThatAPathIsEmpty) {
    const auto done = make_folder("");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::usage);
    EXPECT_THAT(done.error().sentence(), testing::HasSubstr("the path of a folder is empty"));
}

}  // namespace
}  // namespace ddprun::trainer
