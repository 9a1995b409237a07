// Where the secret of a job comes from: the given file, MUNGE, the ledger's folder, or nothing.
// With real files, scripts in place of munge, and the real munge where it is installed.
#include "rendezvous/secret/secret.h"

#include <gmock/gmock.h>

#include <optional>
#include <thread>

#include "base/system/private_file.h"
#include "rendezvous/identity/identity.h"
#include "tests/rendezvous/munge_programs.h"

namespace ddprun::rendezvous {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The content of --secret-file.
const std::string kGiven = "d3xaPHqYbWQ2xVJb7wYJw1xBGfYdkVyTqPs0ZmXoC4E=";

// One node, leading or following, with a loop and a file thread of its own.
struct Node {
    explicit Node(IdentityConfig config) : secrets(loop, files, std::move(config)) {}

    // Asks and waits for the answer, which must never come from within the call.
    template <class T>
    Result<T> await(const std::function<void(Secrets::Done<T>)>& ask) {
        std::optional<Result<T>> answer;
        ask([&](Result<T> got) { answer = std::move(got); });
        EXPECT_FALSE(answer) << "never from within the call";
        EXPECT_TRUE(run_until(loop, [&] { return answer.has_value(); }));
        return answer.value_or(Error());
    }
    Result<std::string> look() {
        return await<std::string>([&](auto done) { secrets.look(done); });
    }
    Result<OwnSecret> own() {
        return await<OwnSecret>([&](auto done) { secrets.own(done); });
    }
    // The secret that this node finds when `leader` sends its Challenge.
    Result<SecretText> of(const OwnSecret& leader) {
        const Challenge challenge{kIdentityScheme,
                                  {"gpu00", Incarnation{1}},
                                  std::string(kNonceSize, 'l'),
                                  leader.credential,
                                  leader.file};
        return await<SecretText>([&](auto done) { secrets.of_leader(challenge, done); });
    }
    Result<> follow() {
        return await<void>([&](auto done) { secrets.of_open_leader(done); });
    }
    asio::io_context loop;
    FileThread files{loop};
    Secrets secrets;
};

// With --secret-file, and with nothing at all.
IdentityConfig given() { return {IdentityMode::automatic, kGiven, ""}; }
IdentityConfig nothing(IdentityMode mode = IdentityMode::automatic) { return {mode, "", ""}; }

// A missing file, one that others can read, and one that is too short to be a secret. The sentence
// says what the user can do about each.
TEST(SecretFile, IsReadOrRefusedWithTheMend) {
    Folder folder;
    const std::string path = folder / "secret";
    EXPECT_THAT(read_secret_file(path).error().sentence(), HasSubstr("--secret-file: " + path));
    ASSERT_TRUE(create_private_file(path, kGiven));
    EXPECT_EQ(*read_secret_file(path), kGiven);
    ::chmod(path.c_str(), 0640);
    const auto open = read_secret_file(path);
    ASSERT_FALSE(open);
    EXPECT_EQ(open.error().code(), ErrorCode::usage);
    EXPECT_THAT(open.error().sentence(), HasSubstr("chmod 600"));
    ASSERT_TRUE(create_private_file(folder / "short", "15 bytes, alas!"));
    EXPECT_THAT(read_secret_file(folder / "short").error().sentence(),
                HasSubstr("15 bytes (at least 16)"));
    ASSERT_TRUE(create_private_file(folder / "words", "the secret of our job"));
    EXPECT_THAT(read_secret_file(folder / "words").error().sentence(),
                AllOf(HasSubstr("its 21 bytes count 42 bits (at least 80)"),
                      HasSubstr("head -c 32 /dev/urandom | base64 makes one")));
}

// The file that the user gave is used before everything else. munge is not even asked: it costs
// time, and it may hang.
TEST(Secrets, TheGivenFileComesFirst) {
    Programs programs;
    programs.plain_munge();
    Node node(given());
    EXPECT_EQ(*node.look(), "--secret-file");
    const auto own = node.own();
    EXPECT_EQ(own->secret, kGiven);
    // The Challenge names neither, which means --secret-file.
    EXPECT_EQ(own->credential + own->file, "");
    EXPECT_EQ(*node.of(*own), kGiven);
    EXPECT_EQ(programs.times_asked("munge"), 0);
}

// An attacker leads and names a secret of another kind. A node with a file uses only that, and a
// node without one cannot be asked for it.
TEST(Secrets, AGivenFileIsAskedForByItsLeader) {
    Node node(given()), other(nothing());
    EXPECT_THAT(node.of({"", "MUNGE:x:", ""}).error().sentence(), HasSubstr("--secret-file"));
    EXPECT_THAT(node.of({"", "", "secret"}).error().sentence(), HasSubstr("--secret-file"));
    EXPECT_THAT(other.of({}).error().sentence(), HasSubstr("has not been given"));
}

// Each munge is a process. The leader of a thousand nodes asks it once, and each node decodes its
// credential once, however often it connects. It is so with every member that it calls.
TEST(Secrets, MungeIsAskedOnce) {
    Programs programs;
    programs.plain_munge();
    Node leader(nothing()), node(nothing());
    EXPECT_EQ(*leader.look(), "MUNGE");
    const auto own = leader.own();
    ASSERT_TRUE(own) << own.error();
    EXPECT_EQ(own->credential,
              "MUNGE:" + std::string(own->secret.data(), own->secret.size()) + ":");
    EXPECT_EQ(leader.own()->credential, own->credential);
    EXPECT_EQ(programs.times_asked("munge"), 1);
    EXPECT_EQ(*node.of(*own), own->secret);
    EXPECT_EQ(*node.of(*own), own->secret);
    EXPECT_EQ(programs.times_asked("unmunge"), 1);
    Node member(nothing());
    const auto other = member.own();
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(*node.of(*other), other->secret);
        EXPECT_EQ(*node.of(*own), own->secret);
    }
    EXPECT_EQ(programs.times_asked("unmunge"), 2);
}

// Every leader makes a secret of its own, and a node finds either one.
TEST(Secrets, EachLeaderHasItsOwnWithMunge) {
    Programs programs;
    programs.plain_munge();
    Node first(nothing()), second(nothing()), node(nothing());
    EXPECT_NE(first.own()->secret, second.own()->secret);
    EXPECT_EQ(*node.of(*first.own()), first.own()->secret);
    EXPECT_EQ(*node.of(*second.own()), second.own()->secret);
}

// The real munged reports a credential that was decoded before on this host. It must still count:
// many nodes of a job may share a host.
TEST(Secrets, RealMungeTellsOneSecretToManyNodes) {
    Programs programs;
    RealMunge munge(programs);
    if (!munge.is_running()) GTEST_SKIP() << "munged is not installed";
    Node leader(nothing());
    const auto own = leader.own();
    ASSERT_TRUE(own) << own.error();
    EXPECT_THAT(own->credential, testing::StartsWith("MUNGE:"));
    for (int i = 0; i < 3; ++i) {
        Node node(nothing());
        const auto found = node.of(*own);
        ASSERT_TRUE(found) << found.error();
        EXPECT_EQ(*found, own->secret);
    }
    Node node(nothing());
    // A credential that is cut.
    EXPECT_THAT(node.of({"", "MUNGE:AwQFAAD:", ""}).error().sentence(), HasSubstr("MUNGE"));
}

// No MUNGE here, so the leader writes a secret into the ledger's folder, readable by this user
// only. The next leader and all nodes find it there.
TEST(Secrets, TheLedgersFolderComesAfterMunge) {
    Programs programs;
    programs.no_munge();
    Folder folder;
    const IdentityConfig config{IdentityMode::automatic, "", folder / "."};
    Node leader(config), next(config), node(config);
    EXPECT_EQ(*leader.look(), "a file in the ledger's folder");
    const auto own = leader.own();
    ASSERT_TRUE(own) << own.error();
    // Too long to guess.
    EXPECT_GE(own->secret.size(), 32u);
    EXPECT_EQ(*node.of(*own), own->secret);
    EXPECT_EQ(next.own()->secret, own->secret) << "who leads next uses the same";
    struct stat status {};
    ASSERT_EQ(::stat((folder / own->file).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
}

// PATH is another job's, so this job's ledger and its secret lie in PATH-0a. A node finds it by the
// name of the file in the Challenge, even if its own command leads elsewhere. It never reads
// another file, such as ledger.json.
TEST(Secrets, TheFolderIsTheOneInWhichTheLedgerReallyLies) {
    Programs programs;
    programs.no_munge();
    Folder folder;
    ASSERT_EQ(::mkdir((folder / "job").c_str(), 0700), 0);
    ASSERT_EQ(::mkdir((folder / "job-0a").c_str(), 0700), 0);
    const IdentityConfig config{IdentityMode::automatic, "", folder / "job"};
    Node leader(config), beside(config), node(config);
    leader.secrets.ledger_lies_in(folder / "job");
    beside.secrets.ledger_lies_in(folder / "job-0a");
    const auto own = leader.own(), other = beside.own();
    ASSERT_TRUE(own && other);
    EXPECT_NE(own->secret, other->secret);
    EXPECT_EQ(*node.of(*own), own->secret);
    EXPECT_EQ(*node.of(*other), other->secret);
    struct stat status {};
    // The end of the folder's name is in the name of the file.
    EXPECT_EQ(::stat((folder / "job-0a/secret-0a").c_str(), &status), 0);
    EXPECT_FALSE(node.of({"", "", "ledger.json"}));
}

// The network is cut, and several nodes lead at once. All of them must use the same secret, or
// their nodes could not meet again.
TEST(Secrets, ManyMakeOneOfTheFolder) {
    Programs programs;
    programs.no_munge();
    const Folder folder;
    std::vector<Result<OwnSecret>> own(6, Error());
    std::vector<std::thread> threads;
    for (auto& one : own)
        threads.emplace_back([&] {
            one = Node({IdentityMode::automatic, "", folder / "."}).own();
        });
    for (std::thread& thread : threads) thread.join();
    for (const auto& one : own) {
        ASSERT_TRUE(one) << one.error();
        EXPECT_EQ(one->secret, own.front()->secret);
    }
}

// A full disk has left an empty secret. It is not written anew: another leader may have done so a
// moment ago, and its nodes use that one. The user has to remove it.
TEST(Secrets, ACutFileOfTheFolderIsRefused) {
    Programs programs;
    programs.no_munge();
    Folder folder;
    ASSERT_TRUE(create_private_file(folder / "secret", ""));
    Node node({IdentityMode::automatic, "", folder / "."});
    EXPECT_THAT(node.own().error().sentence(),
                AllOf(HasSubstr("secret has 0 bytes (at least 16); remove it"),
                      HasSubstr("--secret-file")));
    EXPECT_EQ(*read_private_file(folder / "secret", Links::refuse), "");
}

// A file that others can read is no secret. A file that is not there may mean that the folder is
// not shared, so the sentence says what could not be read.
TEST(Secrets, AFolderThatIsNotOursAloneIsRefused) {
    Programs programs;
    programs.no_munge();
    Folder folder;
    Node node({IdentityMode::automatic, "", folder / "."});
    EXPECT_THAT(node.of({"", "", "secret"}).error().sentence(), HasSubstr("No such file"));
    ASSERT_TRUE(create_private_file(folder / "secret", std::string(64, 'a')));
    ::chmod((folder / "secret").c_str(), 0644);
    EXPECT_THAT(node.of({"", "", "secret"}).error().sentence(), HasSubstr("chmod 600"));
    EXPECT_THAT(node.own().error().sentence(), HasSubstr("--secret-file"));
    // A node without a folder cannot look there; --ledger would help.
    Node without(nothing());
    EXPECT_THAT(without.of({"", "", "secret"}).error().sentence(), HasSubstr("--ledger"));
}

// No secret at all: the error names what is missing and every option that helps. Without
// --identity=require the job runs open; with it the node neither leads nor follows.
TEST(Secrets, NothingIsSaidWithTheMend) {
    Programs programs;
    programs.no_munge();
    Node open(nothing()), strict(nothing(IdentityMode::require));
    EXPECT_THAT(open.look().error().sentence(), HasSubstr("munged does not run on this host"));
    EXPECT_THAT(open.look().error().sentence(), HasSubstr("--secret-file=PATH"));
    // A rendezvous outside of the jobs has no ledger that nodes could read, so that option is not
    // named.
    Node outside({.outside = true});
    EXPECT_THAT(outside.look().error().sentence(),
                AllOf(HasSubstr("give ddprun-rendezvous and all nodes one --secret-file=PATH"),
                      Not(HasSubstr("ledger"))));
    EXPECT_EQ(open.own()->secret, "");
    EXPECT_EQ(strict.own().error().code(), ErrorCode::unavailable);
    EXPECT_FALSE(strict.follow());
    EXPECT_TRUE(open.follow());
}

// An attacker leads and asks for no proof. A node that could give one does not follow: nobody may
// avoid the proof by not asking for it. --identity=none follows.
TEST(Secrets, ALeaderThatAsksForNothingIsFollowedOnlyByWhoHasNothing) {
    Programs programs;
    programs.plain_munge();
    Node with_munge(nothing()), with_file(given()), off(nothing(IdentityMode::none));
    EXPECT_THAT(with_munge.follow().error().sentence(), HasSubstr("MUNGE"));
    EXPECT_THAT(with_file.follow().error().sentence(), HasSubstr("--secret-file"));
    EXPECT_TRUE(off.follow());
    EXPECT_EQ(*off.look(), "");
    EXPECT_EQ(off.own()->secret, "");
}

// The node ends while munge still runs. No answer comes, and the loop can end.
TEST(Secrets, MayGoAtAnyTime) {
    Programs programs;
    // A munge that takes 0.1 s, so that it runs when the secrets go.
    programs.script("munge", "sleep 0.1; echo MUNGE:x:");
    asio::io_context loop;
    FileThread files(loop);
    bool answered = false;
    {
        Secrets secrets(loop, files, nothing());
        secrets.look([&](const Result<std::string>&) { answered = true; });
        secrets.own([&](const Result<OwnSecret>&) { answered = true; });
        settle(loop);
    }
    loop.restart();
    loop.run();
    EXPECT_FALSE(answered);
}

}  // namespace
}  // namespace ddprun::rendezvous
