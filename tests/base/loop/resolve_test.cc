// Host names become addresses without NSS: the parsers with made-up text, resolve() with the real
// /etc/hosts and the real getent of this machine.
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

// Resolves one name on a loop of its own, with the overload that has a callback.
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

// The made-up file has what real ones have: tabs and blanks, comments in two places, several names
// in a line, one address twice, a broken line, and no newline at the end. Case does not matter, as
// in DNS.
TEST(Resolve, FindsNamesAndAliasesInAHostsFile) {
    const std::string hosts =
        "127.0.0.1\tlocalhost\n# 10.0.0.9 gpu01\n10.0.0.1 gpu01.cluster gpu01 GPU-A # gpu07\n"
        "fe80::1 gpu01\n10.0.0.1 gpu01\nnonsense gpu01\n\n10.0.0.2";
    EXPECT_THAT(texts(find_in_hosts(hosts, "gpu01")), ElementsAre("10.0.0.1", "fe80::1"));
    EXPECT_THAT(texts(find_in_hosts(hosts, "gpu-a")), ElementsAre("10.0.0.1"));
    EXPECT_THAT(find_in_hosts(hosts, "gpu07"), IsEmpty());
    // A line with an address and no name. The address is not its own name.
    EXPECT_THAT(find_in_hosts(hosts, "10.0.0.2"), IsEmpty());
}

// getent lists each address once for each socket type; one is enough.
TEST(Resolve, ReadsWhatGetentSays) {
    EXPECT_THAT(texts(parse_ahosts(
                    "10.0.0.3      STREAM gpu03\n10.0.0.3      DGRAM\nfe80::2 STREAM\nbad\n")),
                ElementsAre("10.0.0.3", "fe80::2"));
}

// These names must resolve on every machine, also in a container whose own name no name server
// knows.
TEST(Resolve, TakesLiteralAddressesAndTheLocalHost) {
    EXPECT_THAT(texts(*look_up("10.1.2.3")), ElementsAre("10.1.2.3"));
    EXPECT_THAT(texts(*look_up("::1")), ElementsAre("::1"));
    EXPECT_THAT(*look_up("localhost"), Not(IsEmpty()));
    char own[256] = {};
    ::gethostname(own, sizeof own - 1);
    EXPECT_TRUE(look_up(own)) << own;
}

// An unknown name passes all steps up to getent, and getent's failure is the answer. The sentence
// names the host, which is often a typing mistake in --rdzv-endpoint. `.invalid` is reserved, so no
// DNS server ever knows it.
TEST(Resolve, SaysWhoIsUnknown) {
    const auto result = look_up("no-such-host.invalid");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::not_found) << result.error();
    EXPECT_THAT(result.error().sentence(), HasSubstr("no-such-host.invalid"));
}

// The name becomes an argument of getent. Text that looks like an option or like shell code is
// refused before.
TEST(Resolve, PassesNothingStrangeToTheChild) {
    for (const char* host : {"", "-s", "a b", "$(id)", "a\nb"})
        EXPECT_EQ(look_up(host).error().code(), ErrorCode::malformed) << host;
}

// A name server that does not answer makes getent hang. Here a script called getent comes first in
// PATH and sleeps. resolve() answers after its own limit of 200 ms, not after 100 s.
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
