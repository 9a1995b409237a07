// Removing a ledger: it goes whole, and nothing else goes, whatever lies in the folder and whoever
// begins there at the same moment.
#include "rendezvous/ledger/ledger_contents.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/hexadecimal.h"
#include "rendezvous/ledger/ledger_folder.h"
#include "tests/rendezvous/ledger/ledger_bench.h"

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

// A ledger with an end, and with what a writer that died has left.
std::uint64_t make_ledger(const std::string& path) {
    fs::create_directories(path);
    const auto claim = claim_folder(path, "abc123");
    EXPECT_TRUE(claim) << claim.error();
    (void)create_entry(path, claim->mark, example_entry(0));
    (void)create_entry(path, claim->mark, example_end(1));
    std::ofstream(path + "/.writing-1-2") << "{";
    std::ofstream(path + "/secret") << "0123";
    return claim->mark;
}

TEST(LedgerHistory, HasAllEntriesWithTheirTimes) {
    const Folder folder;
    const auto mark = make_ledger(folder / "a");
    const auto history = read_history(folder / "a", mark);
    ASSERT_TRUE(history) << history.error();
    ASSERT_EQ(history->entries.size(), 2u);
    EXPECT_EQ(history->entries[0].entry, example_entry(0));
    EXPECT_NE(history->entries[1].entry.end(), nullptr);
    for (const DatedEntry& dated : history->entries) EXPECT_GT(dated.written, Duration{});
    EXPECT_FALSE(history->fault);
}

TEST(LedgerHistory, SaysWhichEntryIsMissing) {
    const Folder folder;
    const auto mark = make_ledger(folder / "a");
    (void)create_entry(folder / "a", mark, example_end(2));
    fs::remove(folder / "a/entry-000001.json");
    const auto history = read_history(folder / "a", mark);
    ASSERT_TRUE(history) << history.error();
    EXPECT_EQ(history->entries.size(), 1u);
    ASSERT_TRUE(history->fault);
    EXPECT_THAT(history->fault->sentence(), HasSubstr("entry-000001.json has vanished"));
}

TEST(LedgerHistory, IsOfNoOtherLedgerAndFollowsNoLink) {
    const Folder folder;
    const auto mark = make_ledger(folder / "a");
    const auto other = read_history(folder / "a", mark + 1);
    EXPECT_TRUE(other && other->entries.empty() && other->fault);
    fs::create_symlink(folder / "a", folder / "b");
    EXPECT_FALSE(read_history(folder / "b", mark));
}

TEST(RemoveLedger, TakesItWhole) {
    const Folder folder;
    const auto mark = make_ledger(folder / "a");
    const auto removed = remove_ledger(folder / "a", mark, "finished");
    ASSERT_TRUE(removed) << removed.error();
    EXPECT_TRUE(fs::is_empty(folder / ""));
}

// A newer allocation that met no end goes on in the same folder, with the same mark.
TEST(RemoveLedger, AfterItsOwnEndOnly) {
    const Folder folder;
    const auto mark = make_ledger(folder / "a");
    const int restart = example_end(1).requeue;
    EXPECT_EQ(remove_ended_ledger(folder / "a", mark, restart + 1).error().code(),
              ErrorCode::exists);
    EXPECT_EQ(remove_ended_ledger(folder / "a", mark + 1, restart).error().code(),
              ErrorCode::exists);
    (void)create_entry(folder / "a", mark, example_allocation(2, restart + 1));
    EXPECT_EQ(remove_ended_ledger(folder / "a", mark, restart).error().code(), ErrorCode::exists);
    fs::remove(folder / "a/entry-000002.json");
    EXPECT_TRUE(remove_ended_ledger(folder / "a", mark, restart));
    EXPECT_FALSE(fs::exists(folder / "a"));
}

TEST(RemoveLedger, KnowsTheFilesOfALedger) {
    for (const char* name :
         {"ledger.json", "allocation", "entry-000000.json", "entry-1000000.json", ".writing-12-345",
          "secret", "secret-0123456789abcdef", "secret.aB3dEf", "secret-01ab.aB3dEf"})
        EXPECT_TRUE(is_ledger_file(name)) << name;
    for (const char* name :
         {"", "ledger", "entry-1.json", "entry-0000000.json", "entry--00001.json", "entry-000001",
          "secrets", "secret-", "secret-key", "secret.txt", "secret-of-mine", "Ledger.json"})
        EXPECT_FALSE(is_ledger_file(name)) << name;
}

// An earlier removal, or a job that began, has moved it already.
TEST(RemoveLedger, TakesOneThatWasSetAside) {
    const Folder folder;
    const auto mark = make_ledger(folder / "a");
    const auto aside = move_aside(folder / "a", "finished", mark);
    ASSERT_TRUE(aside && *aside);
    ASSERT_TRUE(remove_ledger(**aside, mark, "finished"));
    EXPECT_TRUE(fs::is_empty(folder / ""));
}

// A removal that was cut short leaves a ledger that is still known to have ended.
TEST(RemoveLedger, GoesOnAfterItWasCutShort) {
    const Folder folder;
    const auto mark = make_ledger(folder / "a");
    fs::remove(folder / "a/allocation");
    fs::remove(folder / "a/entry-000000.json");
    const auto contents = look_into(folder / "a");
    ASSERT_TRUE(contents && contents->newest && contents->newest->end());
    ASSERT_TRUE(remove_ledger(folder / "a", mark, "finished"));
    EXPECT_TRUE(fs::is_empty(folder / ""));
}

// Whatever is no ledger's file stays, and all of the ledger with it.
TEST(RemoveLedger, LeavesAFolderWithAnythingElse) {
    const Folder folder;
    std::ofstream(folder / "precious") << "mine\n";
    const std::string ledger = folder / "a";
    const auto mark = make_ledger(ledger);
    const auto others = {
        +[](const std::string& at, const std::string&) { std::ofstream(at + "/model.pt") << "x"; },
        +[](const std::string& at, const std::string&) { fs::create_directory(at + "/sub"); },
        // These have the name of a ledger's file.
        +[](const std::string& at, const std::string& to) {
            fs::create_symlink(to, at + "/entry-000002.json");
        },
        +[](const std::string& at, const std::string&) {
            ::mkfifo((at + "/entry-000003.json").c_str(), 0600);
        },
        +[](const std::string& at, const std::string&) {
            fs::create_directories(at + "/.writing-3/deep");
        }};
    for (const auto& put : others) {
        put(ledger, folder / "precious");
        std::size_t files = 0;
        for ([[maybe_unused]] const auto& one : fs::directory_iterator(ledger)) ++files;
        const auto removed = remove_ledger(ledger, mark, "finished");
        ASSERT_FALSE(removed);
        EXPECT_EQ(removed.error().code(), ErrorCode::refused);
        EXPECT_THAT(removed.error().sentence(), HasSubstr("no ledger has: "));
        for ([[maybe_unused]] const auto& one : fs::directory_iterator(ledger)) --files;
        EXPECT_EQ(files, 0u);
        for (const char* name :
             {"model.pt", "sub", "entry-000002.json", "entry-000003.json", ".writing-3"})
            fs::remove_all(ledger + "/" + name);
    }
    EXPECT_TRUE(fs::exists(folder / "precious"));
    EXPECT_TRUE(remove_ledger(ledger, mark, "finished"));
}

TEST(RemoveLedger, FollowsNoLink) {
    const Folder folder;
    const auto mark = make_ledger(folder / "there/a");
    fs::create_symlink(folder / "there/a", folder / "link");
    const auto removed = remove_ledger(folder / "link", mark, "finished");
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().code(), ErrorCode::refused);
    EXPECT_TRUE(fs::exists(folder / "there/a/ledger.json"));
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
}

// A job has begun there since somebody looked. Its ledger stays.
TEST(RemoveLedger, LeavesTheNextJobsLedger) {
    const Folder folder;
    const auto mark = make_ledger(folder / "a");
    ASSERT_TRUE(*move_aside(folder / "a", "finished", mark));
    const auto next = make_ledger(folder / "a");
    // Nothing has the name to which the second word would move it.
    for (const char* why : {"finished", "forgotten"}) {
        const auto removed = remove_ledger(folder / "a", mark, why);
        ASSERT_FALSE(removed);
        EXPECT_EQ(removed.error().code(), ErrorCode::exists);
        ASSERT_TRUE(fs::exists(folder / "a/ledger.json"));
        EXPECT_EQ(read_claim(folder / "a")->mark, next);
    }
    EXPECT_TRUE(fs::exists(folder / ("a-finished-" + hexadecimal(mark))));
}

TEST(RemoveLedger, LeavesThatOfSomebodyElse) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
    const Folder folder;
    const auto mark = make_ledger(folder / "a");
    ASSERT_EQ(::chown((folder / "a").c_str(), 12345, 12345), 0);
    EXPECT_EQ(remove_ledger(folder / "a", mark, "finished").error().code(), ErrorCode::refused);
    EXPECT_EQ(look_into(folder / "a").error().code(), ErrorCode::refused);
    EXPECT_TRUE(fs::exists(folder / "a/ledger.json"));
}

// Jobs begin under the name of a finished one while it is removed. Each gets a ledger that it can
// write, or finds the finished one and sets it aside; none loses what it has written.
TEST(RemoveLedger, HarmsNoJobThatBeginsAtThatMoment) {
    constexpr int kRounds = 20;
    for (int round = 0; round < kRounds; ++round) {
        const Folder folder;
        const auto mark = make_ledger(folder / "a");
        std::thread remover([&] { (void)remove_ledger(folder / "a", mark, "finished"); });
        LedgerBench bench;
        const auto opened = bench.open(folder / "a", LedgerBench::owner("next"));
        remover.join();
        ASSERT_TRUE(opened) << opened.error();
        const auto created = bench.create(**opened, example_entry(0));
        ASSERT_EQ(created.outcome, Outcome::won) << created.sentence;
    }
}

}  // namespace
}  // namespace ddprun::rendezvous
