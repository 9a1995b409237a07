// Who may read and write a ledger in etcd: users and passwords, TLS, and sealed values. A real etcd
// on loopback, with certificates that are made here. The tests are skipped where etcd is not
// installed.
#include "rendezvous/ledger/etcd_files.h"

#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <fstream>

#include "rendezvous/ledger/etcd_client.h"
#include "rendezvous/ledger/ledger_etcd.h"
#include "rendezvous/ledger_format/ledger_json.h"
#include "tests/rendezvous/ledger/etcd_server.h"
#include "tests/rendezvous/ledger/ledger_bench.h"

namespace ddprun::rendezvous {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

const std::string kSecret = "a secret that the nodes of this job have";

// The certificates are made once for all tests.
const Folder& certificates() {
    static const Folder folder;
    static const int made =
        std::system((DDPRUN_SOURCE_DIR "/tests/support/certificates.sh " + (folder / "")).c_str());
    EXPECT_EQ(made, 0);
    return folder;
}
std::string file_of(const std::string& name) { return certificates() / name; }

class LedgerAccessTest : public testing::Test {
  protected:
    void SetUp() override {
        if (!EtcdServer::installed()) GTEST_SKIP() << "etcd is not installed";
    }
    LedgerPlace place(bool tls = false) const {
        return {LedgerPlace::Kind::etcd, "ddprun/job", {{"127.0.0.1", server->port()}}, tls};
    }
    LedgerAccessPointer access(const EtcdFiles& files = {}, const std::string& secret = "",
                               bool tls = false) {
        auto read = read_ledger_access(files, place(tls), secret);
        EXPECT_TRUE(read) << read.error();
        return *read;
    }
    OpenedLedger open(LedgerAccessPointer with, bool tls = false,
                      const LedgerOwner& who = LedgerBench::owner()) {
        bench.access = std::move(with);
        return bench.open(place(tls), who);
    }
    // What a ledger that cannot be opened says.
    std::string refusal(const LedgerAccessPointer& with, bool tls = false) {
        const auto ledger = open(with, tls);
        return ledger ? "" : ledger.error().sentence();
    }
    // An etcd that speaks TLS, and with `clients` only to who shows a certificate of ca.pem.
    void serve_tls(const std::string& name = "server", bool clients = false) {
        std::vector<std::string> options{"--cert-file", file_of(name + ".pem"), "--key-file",
                                         file_of(name + ".key")};
        if (clients)
            options.insert(options.end(),
                           {"--client-cert-auth", "--trusted-ca-file", file_of("ca.pem")});
        server.emplace(options, "https");
    }
    EtcdFiles tls_files(const std::string& own = "") const {
        EtcdFiles files{.user = "", .cacert = file_of("ca.pem"), .cert = "", .key = ""};
        if (!own.empty()) files.cert = file_of(own + ".pem"), files.key = file_of(own + ".key");
        return files;
    }
    // The file of a user, "NAME:PASSWORD".
    EtcdFiles as(const std::string& user) const {
        const std::string path = folder / "user";
        std::ofstream(path) << user << "\n";
        ::chmod(path.c_str(), 0600);
        return {path, "", "", ""};
    }
    // Runs etcdctl as etcd's root: its words.
    void control(const std::string& words, bool as_root = true) const {
        const std::string line =
            "ETCDCTL_API=3 etcdctl --endpoints=127.0.0.1:" + std::to_string(server->port()) +
            (as_root ? " --user=root:toor " : " ") + words + " >/dev/null";
        ASSERT_EQ(std::system(("bash -c '" + line + "'").c_str()), 0) << line;
    }
    void serve(std::vector<std::string> options = {}) {
        options.insert(options.end(), {"--bcrypt-cost", "4"});  // the default takes 0.1 s a login
        server.emplace(std::move(options));
        ASSERT_TRUE(comes_true([&] { return bool(open(access())); }));
    }
    void serve_users(std::vector<std::string> options = {}) {
        serve(std::move(options));
        get_users();
    }
    // The user `job` may use the keys below ddprun/, and nobody may use any without a user.
    void get_users() const {
        for (const char* words :
             {"user add root:toor", "user grant-role root root", "user add job:word",
              "role add job", "role grant-permission --prefix=true job readwrite ddprun/",
              "user grant-role job job", "user add poor:word", "auth enable"})
            control(words, false);
    }
    // Writes a value as somebody who has etcd, but not the secret.
    void write(const std::string& key, const std::string& value) {
        EtcdClient client(bench.loop, place(), nullptr);
        std::optional<Result<std::string>> written;
        asio::co_spawn(bench.loop, client.create(key, value),
                       [&](std::exception_ptr, Result<std::string> got) { written = got; });
        ASSERT_TRUE(run_until(bench.loop, [&] { return written.has_value(); }));
        ASSERT_EQ(**written, value);
    }
    // What stands under a key.
    std::string value(const std::string& key) {
        EtcdClient client(bench.loop, place(), nullptr);
        std::string found;
        asio::co_spawn(bench.loop, client.range(key, key + "0"),
                       [&](std::exception_ptr, auto got) { found = got->front().value; });
        EXPECT_TRUE(run_until(bench.loop, [&] { return !found.empty(); }));
        return found;
    }

    Folder folder;
    std::optional<EtcdServer> server;
    LedgerBench bench;
};

// ---- users

TEST_F(LedgerAccessTest, LogsIn) {
    serve_users();
    const auto ledger = open(access(as("job:word")));
    ASSERT_TRUE(ledger) << ledger.error();
    keeps_the_promises(bench, **ledger);
}

// Each sentence says what is wrong and what helps. That etcd runs is known, so nobody is sent to
// look.
TEST_F(LedgerAccessTest, SaysWhyAUserIsNotLetIn) {
    serve_users();
    EXPECT_THAT(refusal(access()), EndsWith("it lets in users only; give --etcd-user-file=PATH"));
    EXPECT_THAT(refusal(access(as("job:wrong"))),
                EndsWith("it does not know user job with the password in " + (folder / "user") +
                         " (--etcd-user-file)"));
    EXPECT_THAT(refusal(access(as("poor:word"))),
                HasSubstr("user poor may not read and write the keys below ddprun/; grant it: "
                          "etcdctl role grant-permission"));
}

// An etcd without users believes everybody, as etcd's own clients hold it. When it gets users, the
// ledger goes on as the one that it was given.
TEST_F(LedgerAccessTest, AUserDoesNoHarmWhereThereAreNone) {
    serve();
    const auto ledger = open(access(as("job:word")));
    ASSERT_TRUE(ledger) << ledger.error();
    EXPECT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won);
    get_users();
    EXPECT_EQ(bench.create(**ledger, example_entry(1)).outcome, Outcome::won);
}

// etcd forgets tokens that are not used, and all of them when it is started again. A token that it
// does not know is renewed, and the request is repeated.
TEST_F(LedgerAccessTest, RenewsItsToken) {
    serve_users({"--auth-token-ttl", "1"});
    const auto ledger = open(access(as("job:word")));
    ASSERT_TRUE(ledger) << ledger.error();
    ASSERT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won);
    server->kill();
    server->start();
    LedgerCreated created;
    EXPECT_TRUE(comes_true([&] {
        created = bench.create(**ledger, example_entry(1));
        return created.outcome != Outcome::failed;
    })) << created.sentence;
    EXPECT_EQ(created.outcome, Outcome::won);
    // A change of users makes older tokens void in another way.
    control("user add another:word");
    EXPECT_EQ(bench.read(**ledger, 0)->size(), 2u);
    // A token of 1 s that nobody uses for that long.
    std::this_thread::sleep_for(std::chrono::milliseconds{2500});
    EXPECT_EQ(bench.create(**ledger, example_entry(2)).outcome, Outcome::won);
}

// The password is changed while a job runs, and changed back: the ledger fails with a sentence, and
// works again.
TEST_F(LedgerAccessTest, OutlivesAChangedPassword) {
    serve_users();
    const auto ledger = open(access(as("job:word")));
    ASSERT_TRUE(ledger) << ledger.error();
    control("user passwd job --interactive=false <<<other");
    EXPECT_THAT(bench.read(**ledger, 0).error().sentence(), HasSubstr("does not know user job"));
    control("user passwd job --interactive=false <<<word");
    EXPECT_TRUE(bench.read(**ledger, 0));
}

// ---- TLS

TEST_F(LedgerAccessTest, SpeaksTls) {
    serve_tls("server", true);
    const auto ledger = open(access(tls_files("client"), "", true), true);
    ASSERT_TRUE(ledger) << ledger.error();
    keeps_the_promises(bench, **ledger);
    EXPECT_THAT((*ledger)->name(), HasSubstr("etcds:127.0.0.1:"));
    // A name, which only ddprun looks up, is in the certificate, too.
    LedgerPlace by_name = place(true);
    by_name.endpoints.front().host = "localhost";
    EXPECT_TRUE(bench.open(by_name));
}

TEST_F(LedgerAccessTest, SaysWhatIsWrongWithACertificate) {
    serve_tls();
    EXPECT_THAT(refusal(access()), HasSubstr("does it speak TLS? give --ledger=etcds:HOST:PORT"));
    EtcdFiles other = tls_files();
    other.cacert = file_of("other_ca.pem");
    EXPECT_THAT(refusal(access(other, "", true), true),
                EndsWith("its certificate has expired, or is of no authority in " + other.cacert +
                         " (--etcd-cacert)"));
    EXPECT_THAT(refusal(access({}, "", true), true), EndsWith("give --etcd-cacert=FILE"));
    serve_tls("elsewhere");
    EXPECT_THAT(refusal(access(tls_files(), "", true), true),
                EndsWith("its certificate does not name this host; give --ledger the name that it "
                         "has"));
    serve_tls("past");
    EXPECT_THAT(refusal(access(tls_files(), "", true), true), HasSubstr("has expired"));
    serve_tls("server", true);
    for (const char* own : {"", "other_ca"})
        EXPECT_THAT(refusal(access(tls_files(own), "", true), true),
                    HasSubstr("does it want --etcd-cert and --etcd-key"));
    server.emplace();
    EXPECT_THAT(refusal(access(tls_files(), "", true), true), HasSubstr("or speak no TLS?"));
}

// What can be seen here is said before anything is asked.
TEST_F(LedgerAccessTest, ChecksItsFiles) {
    server.emplace();
    const auto fault = [this](const EtcdFiles& files) -> std::string {
        const auto read = read_ledger_access(files, place(true), "");
        return read ? "" : read.error().sentence();
    };
    for (const char* text : {"job", ":word", "job:"})
        EXPECT_THAT(fault(as(text)), EndsWith("not one line NAME:PASSWORD")) << text;
    const EtcdFiles open_to_all = as("job:word");
    ::chmod(open_to_all.user.c_str(), 0640);
    EXPECT_THAT(fault(open_to_all), HasSubstr("chmod 600"));
    EXPECT_THAT(fault({folder / "missing", "", "", ""}),
                AllOf(HasSubstr("--etcd-user-file: "), HasSubstr("No such file")));
    EXPECT_THAT(fault({"", file_of("ca.key"), "", ""}),
                AllOf(HasSubstr("--etcd-cacert: "), HasSubstr("is no certificate in PEM format")));
    EXPECT_THAT(fault({"", "/", "", ""}), HasSubstr("is no certificate in PEM format"));
    EXPECT_THAT(fault({"", "", file_of("client.pem"), file_of("server.key")}),
                AllOf(HasSubstr("is not the key of "), HasSubstr("client.pem (--etcd-cert)")));
    EXPECT_THAT(fault({"", "", file_of("past.pem"), file_of("past.key")}),
                AllOf(HasSubstr("past.pem: has expired on "), HasSubstr("ask for a new one")));
    EXPECT_THAT(fault({"", "", file_of("client.pem"), as("no key").user}),
                HasSubstr("is no private key in PEM format"));
    EXPECT_EQ(fault(tls_files("client")), "");
}

// ---- sealed values

// Two nodes with the secret share a ledger, as ever: all promises, a requeue, and the finished
// series.
TEST_F(LedgerAccessTest, SealsAndOpens) {
    server.emplace();
    const auto first = open(access({}, kSecret));
    ASSERT_TRUE(first) << first.error();
    keeps_the_promises(bench, **first);
    const auto second = open(access({}, kSecret), false, LedgerBench::owner("abc123", 1));
    ASSERT_TRUE(second) << second.error();
    EXPECT_TRUE(
        bench.lines.has("ddprun/job/2/ in etcd begins; ddprun/job/1/ belongs to a job "
                        "that has ended"));
    shows_newer_allocations(bench, **second);
    EXPECT_EQ(read_etcd_claim(place(), access({}, kSecret))->mark, (*second)->mark());
}

// Somebody who may write to etcd plants an end, which everybody would obey.
TEST_F(LedgerAccessTest, RefusesAPlantedEntry) {
    server.emplace();
    const auto ledger = open(access({}, kSecret));
    ASSERT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won);
    const std::string key = "ddprun/job/1/entry-000001";
    const std::string planted = to_json(example_end(1), JsonStyle::compact);
    write(key, planted);
    const auto refused = AllOf(HasSubstr("ledger entry " + key + " in etcd bears no seal"),
                               HasSubstr("without this job's --secret-file"));
    EXPECT_THAT(bench.read(**ledger, 0).error().sentence(), refused);
    const LedgerCreated created = bench.create(**ledger, example_entry(1));
    EXPECT_EQ(created.outcome, Outcome::failed);
    EXPECT_THAT(created.sentence, refused);
    EXPECT_THAT(refusal(access({}, kSecret)), AllOf(refused, HasSubstr("delete it if no job")));
    // A look that sees nothing else says that it could not look.
    EXPECT_THAT(bench.look(**ledger, 1).error().sentence(), refused);
}

// A true entry of the job, copied to the next number or kept from an earlier ledger of that name.
TEST_F(LedgerAccessTest, RefusesAMovedEntry) {
    server.emplace();
    const LedgerAccessPointer with = access({}, kSecret);
    const auto ledger = open(with);
    ASSERT_EQ(bench.create(**ledger, example_end(0)).outcome, Outcome::won);
    const std::string end = value("ddprun/job/1/entry-000000");
    write("ddprun/job/1/entry-000001", end);
    EXPECT_THAT(bench.read(**ledger, 1).error().sentence(), HasSubstr("bears a wrong seal"));
    // A new job under that name, for which somebody has made the old ledger vanish.
    control("del --prefix ddprun/job/", false);
    const auto next = open(with);
    ASSERT_TRUE(next) << next.error();
    write("ddprun/job/1/entry-000000", end);
    EXPECT_THAT(bench.read(**next, 0).error().sentence(), HasSubstr("bears a wrong seal"));
}

// The claim says whose the ledger is, and with its mark all entries count.
TEST_F(LedgerAccessTest, RefusesAPlantedClaim) {
    server.emplace();
    write("ddprun/job/1/ledger", to_json(LedgerClaim{"abc123", 5}));
    const auto refused = HasSubstr("ledger key ddprun/job/1/ledger in etcd bears no seal");
    EXPECT_THAT(refusal(access({}, kSecret)), refused);
    bench.access = access({}, kSecret);
    EXPECT_THAT(bench.open(place(), LedgerBench::owner("abc123", 0, 5)).error().sentence(),
                refused);
    EXPECT_THAT(bench.members(place()), testing::IsEmpty());
}

// One node has the secret and the other was not given it.
TEST_F(LedgerAccessTest, SaysThatANodeHasNoSecret) {
    server.emplace();
    const auto with = open(access({}, kSecret));
    ASSERT_TRUE(with);
    const auto said = HasSubstr("is sealed with a --secret-file, which this node was not given");
    EXPECT_THAT(refusal(access()), said);
    bench.access = access();
    const LedgerOwner follower = LedgerBench::owner("abc123", 0, (*with)->mark());
    EXPECT_THAT(bench.open(place(), follower).error().sentence(), said);
    EXPECT_THAT(read_etcd_claim(place(), access()).error().sentence(), said);
    // And the other way round.
    bench.access = access({}, "another secret that this job has");
    EXPECT_THAT(bench.open(place(), follower).error().sentence(), HasSubstr("bears a wrong seal"));
}

}  // namespace
}  // namespace ddprun::rendezvous
