// Where a ledger lies: the value of --ledger, and the place of one job in it. Pure; no folder is
// made.
#include "rendezvous/ledger_format/ledger_place.h"

#include <gmock/gmock.h>

namespace ddprun::rendezvous {
namespace {

using Kind = LedgerPlace::Kind;
using testing::ElementsAre;
using testing::HasSubstr;

// A path with a slash is a folder. An IPv6 address has brackets, which are not part of the host.
TEST(LedgerPlace, ReadsWhatLedgerOptionsSay) {
    EXPECT_EQ(read_ledger_place("memory")->kind, Kind::memory);
    EXPECT_EQ(read_ledger_place("directory:runs")->path, "runs");
    EXPECT_EQ(read_ledger_place("./runs")->path, "./runs");
    const auto etcd = read_ledger_place("etcd:a:2379,10.0.0.1:1,[fe80::1]:65535");
    ASSERT_TRUE(etcd) << etcd.error();
    EXPECT_EQ(etcd->kind, Kind::etcd);
    EXPECT_THAT(etcd->endpoints, ElementsAre(EtcdEndpoint{"a", 2379}, EtcdEndpoint{"10.0.0.1", 1},
                                             EtcdEndpoint{"fe80::1", 65535}));
    EXPECT_EQ(to_text(*etcd), "etcd:a:2379,10.0.0.1:1,[fe80::1]:65535");
    EXPECT_FALSE(etcd->tls);
    EXPECT_TRUE(read_ledger_place("etcds:a:2379")->tls);
    EXPECT_EQ(to_text(*of_job(*read_ledger_place("etcds:a:2379"), "r")), "etcds:a:2379");
}

// A misspelled "memory" must not become a folder of that name: each node would have its own, and
// the job would not survive the loss of its leader.
TEST(LedgerPlace, RefusesWhatIsNoLedger) {
    for (const char* bad : {"", "memry", "directory:", "etcd"})
        EXPECT_EQ(read_ledger_place(bad).error().code(), ErrorCode::usage) << bad;
    for (const char* bad : {"etcd:", "etcd:a", "etcd:a:", "etcd::2379", "etcd:a:0", "etcd:a:65536",
                            "etcd:a:1,", "etcd:a:1,,b:2", "etcd:http://a:2379", "etcd:u@a:1",
                            "etcd:fe80::1:2379", "etcd:[]:1", "etcd:a:1 ", "etcd:[a:1"})
        EXPECT_THAT(read_ledger_place(bad).error().sentence(),
                    HasSubstr("is not an etcd endpoint; give etcd:HOST:PORT"))
            << bad;
}

// A run id may hold any character. Two run ids must not share a folder ("a b" and "a%20b"), and
// none may leave the parent folder ("..").
TEST(LedgerPlace, NamesTheJobsPart) {
    const auto folder = *read_ledger_place("directory:/l");
    EXPECT_EQ(of_job(folder, "lab.8812.0")->path, "/l/lab.8812.0");
    EXPECT_EQ(of_job(*read_ledger_place("directory:/l/"), "r")->path, "/l/r");
    EXPECT_EQ(of_job(folder, "a b")->path, "/l/a%20b");
    EXPECT_EQ(of_job(folder, "a_b")->path, "/l/a_b");
    EXPECT_EQ(of_job(folder, "a%20b")->path, "/l/a%2520b");
    EXPECT_EQ(of_job(folder, "../x")->path, "/l/%2E.%2Fx");
    EXPECT_EQ(of_job(*read_ledger_place("etcd:h:1"), "r/1")->path, "ddprun/r%2F1");
    EXPECT_EQ(of_job(folder, "..")->path, "/l/%2E.");
    EXPECT_EQ(of_job(folder, "")->path, "/l/%");
    // A ledger in memory has no place, so its name may be as long as it likes.
    EXPECT_EQ(*of_job({}, "r"), LedgerPlace{});
    EXPECT_EQ(folder_of(folder), "/l");
    EXPECT_EQ(folder_of(*of_job(*read_ledger_place("etcd:h:1"), "r")), "");
    EXPECT_TRUE(of_job({}, std::string(300, 'a')));
    EXPECT_THAT(of_job(folder, std::string(300, 'a')).error().sentence(),
                HasSubstr("300 characters"));
}

// Who names files for TLS must not get a connection without it.
TEST(LedgerPlace, ChecksTheFilesForEtcd) {
    const auto fault = [](const EtcdFiles& files, const char* place) -> std::string {
        const auto good = check_etcd_files(files, *read_ledger_place(place));
        return good ? "" : good.error().sentence();
    };
    const EtcdFiles user{"u", "", "", ""}, ca{"", "c", "", ""}, own{"", "", "c", "k"};
    for (const EtcdFiles& files : {user, ca, own}) EXPECT_EQ(fault(files, "etcds:h:1"), "");
    EXPECT_EQ(fault(user, "etcd:h:1"), "");
    for (const EtcdFiles& files : {ca, own})
        EXPECT_THAT(fault(files, "etcd:h:1"), HasSubstr("give --ledger=etcds:HOST:PORT"));
    for (const EtcdFiles& files : {EtcdFiles{"", "", "c", ""}, EtcdFiles{"", "", "", "k"}})
        EXPECT_THAT(fault(files, "etcds:h:1"), HasSubstr("give both"));
    // A site may give them to all its users, whatever their ledger is.
    for (const char* other : {"memory", "directory:/d"}) EXPECT_EQ(fault(ca, other), "");
}

}  // namespace
}  // namespace ddprun::rendezvous
