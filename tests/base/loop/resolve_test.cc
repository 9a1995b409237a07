#include "base/loop/resolve.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "tests/support/loop.h"

namespace ddprun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Result<Addresses> look_up(const std::string& host, Duration limit = std::chrono::seconds{10}) {
    asio::io_context loop;
    std::optional<Result<Addresses>> got;
    resolve(loop, host, limit, [&](Result<Addresses> result) { got = std::move(result); });
    EXPECT_FALSE(got) << "never from within the call";
    EXPECT_TRUE(run_until(loop, [&] { return got.has_value(); }));
    return got.value_or(Error(ErrorCode::internal, "no answer"));
}

std::vector<std::string> texts(const Addresses& addresses) {
    std::vector<std::string> list;
    for (const auto& address : addresses) list.push_back(address.to_string());
    return list;
}

TEST(Resolve, FindsNamesAndAliasesInAHostsFile) {
    const std::string hosts =
        "127.0.0.1\tlocalhost\n# 10.0.0.9 gpu01\n10.0.0.1 gpu01.cluster gpu01 GPU-A # gpu07\n"
        "fe80::1 gpu01\n10.0.0.1 gpu01\nnonsense gpu01\n\n10.0.0.2";
    EXPECT_THAT(texts(find_in_hosts(hosts, "gpu01")), ElementsAre("10.0.0.1", "fe80::1"));
    EXPECT_THAT(texts(find_in_hosts(hosts, "gpu-a")), ElementsAre("10.0.0.1"));
    EXPECT_THAT(find_in_hosts(hosts, "gpu07"), IsEmpty());
    EXPECT_THAT(find_in_hosts(hosts, "10.0.0.2"), IsEmpty());
}

TEST(Resolve, ReadsWhatGetentSays) {
    EXPECT_THAT(texts(parse_ahosts(
                    "10.0.0.3      STREAM gpu03\n10.0.0.3      DGRAM\nfe80::2 STREAM\nbad\n")),
                ElementsAre("10.0.0.3", "fe80::2"));
}

TEST(Resolve, TakesLiteralAddressesAndTheLocalHost) {
    EXPECT_THAT(texts(*look_up("10.1.2.3")), ElementsAre("10.1.2.3"));
    EXPECT_THAT(texts(*look_up("::1")), ElementsAre("::1"));
    EXPECT_THAT(*look_up("localhost"), Not(IsEmpty()));
    char own[256] = {};
    ::gethostname(own, sizeof own - 1);
    EXPECT_TRUE(look_up(own)) << own;
}

// An unknown name goes the whole way to the child, and its end is the answer; no child is left
// behind.
TEST(Resolve, SaysWhoIsUnknown) {
    const auto result = look_up("no-such-host.invalid");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::not_found) << result.error();
    EXPECT_THAT(result.error().sentence(), HasSubstr("no-such-host.invalid"));
}

TEST(Resolve, PassesNothingStrangeToTheChild) {
    for (const char* host : {"", "-s", "a b", "$(id)", "a\nb"})
        EXPECT_EQ(look_up(host).error().code(), ErrorCode::malformed) << host;
}

// A getent that hangs (a program of that name first in PATH) is ended at the deadline.
TEST(Resolve, EndsAGetentThatHangs) {
    const Folder folder;
    const std::string program = folder / "getent";
    std::ofstream(program) << "#!/bin/sh\nexec sleep 100\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const std::string path = ::getenv("PATH");
    ::setenv("PATH", (program.substr(0, program.rfind('/')) + ":" + path).c_str(), 1);
    const auto result = look_up("slow.invalid", std::chrono::milliseconds{200});
    ::setenv("PATH", path.c_str(), 1);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::timed_out) << result.error();
}

}  // namespace
}  // namespace ddprun
