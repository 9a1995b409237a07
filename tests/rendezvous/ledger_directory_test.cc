#include "rendezvous/ledger_directory.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <thread>

#include "rendezvous/ledger_memory.h"
#include "tests/rendezvous/examples.h"
#include "tests/rendezvous/loop.h"

namespace ddprun::rendezvous {
namespace {

using Outcome = LedgerCreated::Outcome;
using testing::ElementsAre;
using testing::HasSubstr;

// A loop, a file thread and a folder, with calls that wait for their answers.
struct Bench {
    asio::io_context loop;
    FileThread files{loop};
    Lines lines;

    Result<std::unique_ptr<Ledger>> open(const std::string& path,
                                         const std::string& digest = "abc123") {
        std::optional<Result<std::unique_ptr<Ledger>>> got;
        open_ledger_directory(
            path, digest, files, lines.log(),
            [&](Result<std::unique_ptr<Ledger>> opened) { got.emplace(std::move(opened)); });
        EXPECT_TRUE(run_until(loop, [&] { return got.has_value(); }));
        return std::move(*got);
    }
    LedgerCreated create(Ledger& ledger, const LedgerEntry& entry) {
        std::optional<LedgerCreated> got;
        ledger.create(entry, [&](LedgerCreated created) { got = std::move(created); });
        EXPECT_FALSE(got) << "never from within the call";
        EXPECT_TRUE(run_until(loop, [&] { return got.has_value(); }));
        return std::move(*got);
    }
    Result<std::vector<LedgerEntry>> read(Ledger& ledger, std::int64_t from) {
        std::optional<Result<std::vector<LedgerEntry>>> got;
        ledger.read(EntryNumber{from}, [&](auto entries) { got.emplace(std::move(entries)); });
        EXPECT_TRUE(run_until(loop, [&] { return got.has_value(); }));
        return std::move(*got);
    }
};

std::vector<std::string> names(const std::string& folder) {
    std::vector<std::string> list;
    for (const auto& file : std::filesystem::directory_iterator(folder))
        list.push_back(file.path().filename().string());
    std::sort(list.begin(), list.end());
    return list;
}

// Both kinds keep the same promises: in order, once, one's own repeated create has won, another's
// has not.
void keeps_the_promises(Bench& bench, Ledger& ledger) {
    EXPECT_TRUE(bench.read(ledger, 0)->empty());
    EXPECT_EQ(bench.create(ledger, example_entry(0, 1)).outcome, Outcome::won);
    EXPECT_EQ(bench.create(ledger, example_entry(0, 1)).outcome, Outcome::won);
    const LedgerCreated lost = bench.create(ledger, example_entry(0, 2));
    EXPECT_EQ(lost.outcome, Outcome::lost);
    EXPECT_EQ(lost.entry, example_entry(0, 1));
    EXPECT_EQ(bench.create(ledger, example_end(1, 3)).outcome, Outcome::won);
    EXPECT_THAT(*bench.read(ledger, -1), ElementsAre(example_entry(0, 1), example_end(1, 3)));
    EXPECT_THAT(*bench.read(ledger, 1), ElementsAre(example_end(1, 3)));
    EXPECT_TRUE(bench.read(ledger, 2)->empty());
}

TEST(LedgerMemory, WritesOnce) {
    Bench bench;
    LedgerMemory ledger(bench.loop);
    keeps_the_promises(bench, ledger);
}

TEST(LedgerDirectory, WritesOnceAndLeavesNothingElse) {
    Bench bench;
    const Folder folder;
    const auto ledger = bench.open(folder / "a/b/8812.0/");
    ASSERT_TRUE(ledger) << ledger.error();
    keeps_the_promises(bench, **ledger);
    EXPECT_THAT(names(folder / "a/b/8812.0"),
                ElementsAre("entry-000000.json", "entry-000001.json"));
}

// Eight processes and four threads each want entry 0: one has won, all others are shown the
// winner's.
TEST(LedgerDirectory, OneOfManyWritersWins) {
    const Folder folder;
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            Bench bench;
            LedgerDirectory ledger(folder / "", bench.files);
            const auto got = bench.create(ledger, example_entry(0, 100 + i));
            ::_exit(got.outcome == Outcome::won ? 0 : got.outcome == Outcome::lost ? 1 : 2);
        }
        children.push_back(child);
    }
    std::atomic<int> won = 0, lost = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            Bench bench;
            LedgerDirectory ledger(folder / "", bench.files);
            ++(bench.create(ledger, example_entry(0, i)).outcome == Outcome::won ? won : lost);
        });
    for (std::thread& thread : threads) thread.join();
    for (pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2) << status;
        ++(WEXITSTATUS(status) == 0 ? won : lost);
    }
    EXPECT_EQ(won, 1);
    EXPECT_EQ(lost, 11);
    EXPECT_THAT(names(folder / ""), ElementsAre("entry-000000.json"));
}

TEST(LedgerDirectory, NamesACutEntry) {
    Bench bench;
    const Folder folder;
    const auto ledger = bench.open(folder / "job");
    std::ofstream(folder / "job/entry-000000.json") << R"({"format": "ddprun led)";
    EXPECT_THAT(bench.read(**ledger, 0).error().sentence(),
                HasSubstr("job/entry-000000.json is cut"));
    const LedgerCreated created = bench.create(**ledger, example_entry(0));
    EXPECT_EQ(created.outcome, Outcome::failed);
    EXPECT_THAT(created.sentence, HasSubstr("job/entry-000000.json is cut"));
    EXPECT_EQ(bench.open(folder / "job").error().code(), ErrorCode::malformed);
}

TEST(LedgerDirectory, SaysWhichFolderCannotBeUsed) {
    Bench bench;
    const Folder folder;
    std::ofstream(folder / "file") << "in the way";
    const auto blocked = bench.open(folder / "file/job");
    EXPECT_EQ(blocked.error().code(), ErrorCode::unavailable);
    EXPECT_THAT(
        blocked.error().sentence(),
        HasSubstr("file/job: Not a directory; choose another with --ledger=directory:PATH"));
    EXPECT_EQ(bench.open("/proc/ddprun-ledger").error().code(), ErrorCode::unavailable);
    if (::geteuid() == 0) return;  // root may write everywhere
    std::filesystem::create_directory(folder / "closed");
    std::filesystem::permissions(folder / "closed", std::filesystem::perms::owner_read);
    EXPECT_THAT(bench.open(folder / "closed").error().sentence(),
                HasSubstr("Permission denied; choose another"));
}

// A finished job's ledger is moved aside, once as 1, then as 2; another command's too; one's own
// goes on.
TEST(LedgerDirectory, SetsFinishedAndForeignLedgersAside) {
    Bench bench;
    const Folder folder;
    for (int round = 1; round <= 2; ++round) {
        const auto ledger = bench.open(folder / "job");
        ASSERT_TRUE(ledger) << ledger.error();
        EXPECT_TRUE(bench.read(**ledger, 0)->empty());
        bench.create(**ledger, example_entry(0));
        bench.create(**ledger, example_end(1));
    }
    const auto fresh = bench.open(folder / "job");
    EXPECT_TRUE(bench.read(**fresh, 0)->empty());
    EXPECT_THAT(names(folder / ""), ElementsAre("job", "job-finished-1", "job-finished-2"));
    EXPECT_TRUE(bench.lines.has("job-finished-2, and a new one begins"));

    bench.create(**fresh, example_entry(0));
    EXPECT_EQ(bench.read(**bench.open(folder / "job"), 0)->size(), 1u)
        << "the same command goes on";
    EXPECT_TRUE(bench.read(**bench.open(folder / "job", "other"), 0)->empty());
    EXPECT_TRUE(bench.lines.has("job-other-1"));
}

// What a writer that died has left goes at the next opening.
TEST(LedgerDirectory, RemovesTemporariesOfTheDead) {
    Bench bench;
    const Folder folder;
    std::filesystem::create_directory(folder / "job");
    std::ofstream(folder / "job/.writing-1-2") << "half";
    ASSERT_TRUE(bench.open(folder / "job"));
    EXPECT_THAT(names(folder / "job"), ElementsAre());
}

// A ledger that goes away calls nobody.
TEST(LedgerDirectory, IsSilentWhenDestroyed) {
    Bench bench;
    const Folder folder;
    auto ledger = bench.open(folder / "job");
    bool called = false;
    (*ledger)->create(example_entry(0), [&](LedgerCreated) { called = true; });
    ledger->reset();
    bench.loop.restart();
    bench.loop.run();
    EXPECT_FALSE(called);
}

}  // namespace
}  // namespace ddprun::rendezvous
