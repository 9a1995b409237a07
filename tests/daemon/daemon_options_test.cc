// The command line of ddprun-rendezvous: what is accepted, and the sentence for what is not. Pure.
#include "daemon/daemon_options.h"

#include <gmock/gmock.h>

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

// The sentence for these words; empty: they are accepted.
std::string fault(const std::vector<std::string_view>& words) {
    const auto read = read_daemon_options(words);
    if (read) return "";
    EXPECT_EQ(read.error().code(), ErrorCode::usage);
    return read.error().sentence();
}

// Without options nobody from outside can reach it and nothing is written: c10d has no
// authentication, and torchrun runs what it finds there.
TEST(DaemonOptions, AreCautiousByDefault) {
    const auto options = read_daemon_options({});
    ASSERT_TRUE(options);
    EXPECT_EQ(options->host, "127.0.0.1");
    EXPECT_EQ(options->port, 29400);
    EXPECT_FALSE(options->serve_c10d);
    EXPECT_EQ(options->ledger.kind, LedgerPlace::Kind::memory);
}

// IPv6 addresses contain colons, so they need brackets. A name is refused: it may have several
// addresses. `localhost` is the exception, with one meaning.
TEST(DaemonOptions, TakesAnAddressWithItsPortOrAPortAlone) {
    struct Row {
        const char* text;
        const char* host;
        int port;
    };
    for (const Row& row : std::vector<Row>{{"1234", "127.0.0.1", 1234},
                                           {":1234", "127.0.0.1", 1234},
                                           {"0.0.0.0:0", "0.0.0.0", 0},
                                           {"localhost:7", "127.0.0.1", 7},
                                           {"[::]:65535", "::", 65535},
                                           {"[fd00::1]:9", "fd00::1", 9}}) {
        const auto options = read_daemon_options({"--listen", row.text});
        ASSERT_TRUE(options) << row.text << ": " << options.error();
        EXPECT_EQ(options->host, row.host) << row.text;
        EXPECT_EQ(options->port, row.port) << row.text;
    }
    // Empty, no port, no address, a port out of range, no brackets, half a bracket, a name, a
    // letter behind the port.
    for (const char* bad : {"", ":", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:-1", "::1:5",
                            "[1.2.3:5", "node7:5", "1.2.3.4:5x"})
        EXPECT_THAT(fault({"--listen", bad}), HasSubstr(std::string("--listen=") + bad + ": exp"));
}

// Each sentence repeats the option as it was written. An option of a job, such as --nnodes, belongs
// on the job's command line.
TEST(DaemonOptions, NamesWhatItDoesNotTake) {
    EXPECT_EQ(fault({"--serve-c10d=yes"}), "--serve-c10d=yes: expected no value");
    EXPECT_EQ(fault({"--ledger"}), "--ledger needs a value");
    EXPECT_EQ(fault({"--ledger=directory:"}),
              "--ledger=directory:: the path is empty; give directory:PATH");
    EXPECT_THAT(fault({"--ledger=etcd:a"}),
                HasSubstr("--ledger=etcd:a: \"a\" is not an etcd endpoint"));
    EXPECT_THAT(fault({"--nnodes=2"}), HasSubstr("unknown option --nnodes; see --help"));
    EXPECT_THAT(fault({"now"}), HasSubstr("unknown option now"));
}

// An option that the help does not have cannot be found.
TEST(DaemonOptions, TellsEachOptionInItsHelp) {
    for (const char* option : {"--listen", "--ledger", "--serve-c10d", "--version", "--help"})
        EXPECT_THAT(daemon_help(), HasSubstr(option));
    EXPECT_TRUE(read_daemon_options({"-h"})->help);
}

// The syntax of ddprun's --ledger, and of two the last one counts.
TEST(DaemonOptions, TakesTheLedgersThatDdprunTakes) {
    using Kind = LedgerPlace::Kind;
    EXPECT_EQ(read_daemon_options({"--ledger=directory:/l"})->ledger,
              (LedgerPlace{Kind::directory, "/l", {}}));
    EXPECT_EQ(read_daemon_options({"--ledger", "etcd:a:2379,[::1]:2380"})->ledger,
              (LedgerPlace{Kind::etcd, "", {{"a", 2379}, {"::1", 2380}}}));
    EXPECT_EQ(read_daemon_options({"--ledger=/l", "--ledger=memory"})->ledger, LedgerPlace{});
}

}  // namespace
}  // namespace ddprun::rendezvous
