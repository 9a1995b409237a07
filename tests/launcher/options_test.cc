#include "launcher/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "launcher/option_table.h"

namespace ddprun::launcher {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> words(const std::string& line) {
    std::istringstream stream(line);
    return {std::istream_iterator<std::string>(stream), {}};
}

Options parsed(const std::string& line, const Environment& environment = {}) {
    auto options = parse_options(words(line), environment);
    EXPECT_TRUE(options) << line << ": " << options.error();
    return options ? *options : Options();
}

std::string refusal(const std::string& line, const Environment& environment = {}) {
    auto options = parse_options(words(line), environment);
    if (options) return "accepted";
    EXPECT_EQ(options.error().code(), ErrorCode::usage) << line;
    EXPECT_EQ(options.error().sentence().find('\n'), std::string::npos) << line;
    return options.error().sentence();
}

// Both spellings, both forms of giving a value, letters with the value glued on, and abbreviations
// are the same.
TEST(Options, SpellingsAreTheSame) {
    for (const char* line : {"--nproc-per-node=4 p", "--nproc_per_node=4 p", "--nproc-per-node 4 p",
                             "--nproc_per-node 4 p", "--nproc=4 p", "--nproc_p 4 p",
                             "--nproc-per-node=2 --nproc_per_node=4 p"})
        EXPECT_EQ(parsed(line).nproc_per_node->count, 4) << line;
    for (const char* line : {"-r3 p", "-r 3 p", "-r=3 p", "--redirect=3 p", "-mr3 p"})
        EXPECT_EQ(parsed(line).redirects.all, (Streams{true, true})) << line;
    EXPECT_TRUE(parsed("-mr3 p").module);
    EXPECT_TRUE(parsed("--stand p").standalone);
    EXPECT_TRUE(parsed("--no_py p").no_python);
    EXPECT_EQ(parsed("--log-d=x p").log_dir, "x");
}

// Options end at the program; what stands behind it is never looked at.
TEST(Options, TheRestIsTheProgram) {
    Options options = parsed("--nnodes 2:4 --rdzv-endpoint=h:1 train.py --nnodes 3 -- --help -x");
    EXPECT_EQ(options.nnodes, (NodeRange{2, 4}));
    EXPECT_EQ(options.program, "train.py");
    EXPECT_THAT(options.arguments, ElementsAre("--nnodes", "3", "--", "--help", "-x"));
    EXPECT_EQ(parsed("--standalone -- --odd a").program, "--odd");
    EXPECT_THAT(parsed("p --d 3").arguments, ElementsAre("--d", "3"));
}

// Every option of ours and of torchrun that means something ends up in its field.
TEST(Options, FieldsAreFilled) {
    Options options = parsed(
        "--node-rank 1 --rdzv-backend c10d --rdzv-endpoint h:29400 --rdzv-id 101 --rdzv-conf "
        "is_host=0 --max-restarts 3 "
        "--role X: --no-python --log-dir logs -t 3 --local-ranks-filter 0,1 --local-addr 10.0.0.1 "
        "--master-addr m "
        "--master-port 29500 --ports=20000-20003 --ledger=memory --secret-file=/s --identity "
        "require --lease 20 --join-timeout=60 "
        "--last-call 5 "
        "--shutdown-timeout 8 --crash-loop 0 --python /p --no-label -q p");
    EXPECT_EQ(options.node_rank, 1);
    EXPECT_EQ(options.rdzv_backend, "c10d");
    EXPECT_EQ(options.rdzv_endpoint, (HostPort{"h", 29400}));
    EXPECT_EQ(options.rdzv_id, "101");
    EXPECT_EQ(options.rdzv_conf.is_host, false);
    EXPECT_EQ(options.max_restarts, (RestartLimit{false, 3}));
    EXPECT_EQ(options.role, "X:");
    EXPECT_TRUE(options.no_python);
    EXPECT_EQ(options.log_dir, "logs");
    EXPECT_EQ(options.tee.all, (Streams{true, true}));
    EXPECT_THAT(options.local_ranks_filter, ElementsAre(0, 1));
    EXPECT_EQ(options.local_addr, "10.0.0.1");
    EXPECT_EQ(options.master_addr, "m");
    EXPECT_EQ(options.master_port, 29500);
    EXPECT_EQ(options.ports, (PortRange{20000, 20003}));
    EXPECT_EQ(options.ledger->kind, LedgerChoice::Kind::memory);
    EXPECT_EQ(options.secret_file, "/s");
    EXPECT_EQ(options.identity, rendezvous::IdentityMode::require);
    EXPECT_EQ(options.lease, milliseconds(20'000));
    EXPECT_EQ(options.join_timeout, milliseconds(60'000));
    EXPECT_EQ(options.last_call, milliseconds(5000));
    EXPECT_EQ(options.shutdown_timeout, milliseconds(8000));
    EXPECT_EQ(options.crash_loop, 0);
    EXPECT_EQ(options.python, "/p");
    EXPECT_EQ(options.label, false);
    EXPECT_EQ(options.verbosity, -1);
    EXPECT_THAT(options.warnings, IsEmpty());
}

// A PET_ variable stands in for what the command line does not say; flags are numbers.
TEST(Options, VariablesStandIn) {
    Environment environment{{"PET_NNODES", "2"},       {"PET_NPROC_PER_NODE", "8"},
                            {"PET_STANDALONE", "0"},   {"PET_MODULE", "1"},
                            {"PET_RDZV_ENDPOINT", ""}, {"PET_NODE_RANK", "1"}};
    Options options = parsed("--nproc-per-node=2 p", environment);
    EXPECT_EQ(options.nnodes, (NodeRange{2, 2}));
    EXPECT_EQ(options.nproc_per_node->count, 2);
    EXPECT_EQ(options.node_rank, 1);
    EXPECT_FALSE(options.standalone);
    EXPECT_TRUE(options.module);
    EXPECT_EQ(options.rdzv_endpoint, std::nullopt);
    EXPECT_EQ(refusal("p", {{"PET_STANDALONE", "yes"}}),
              "PET_STANDALONE=yes: not a number; give 1 or 0");
    EXPECT_EQ(refusal("p", {{"PET_NNODES", "x"}}),
              "PET_NNODES=x: not a number of nodes; give N or MIN:MAX");
}

// What has no effect here is taken, with a warning that says why.
TEST(Options, IgnoredOptionsWarn) {
    EXPECT_THAT(
        parsed("--monitor_interval=1 --start-method spawn --numa-binding=exclusive --rdzv-conf "
               "timeout=60 p")
            .warnings,
        ElementsAre(
            "--monitor_interval has no effect here: not needed: the end of a worker is seen at "
            "once",
            "--start-method has no effect here: every worker is a program of its own here",
            "--numa-binding has no effect here: CPUs are left as Slurm or the caller bound them",
            "--rdzv-conf: the key timeout has no effect here"));
    EXPECT_THAT(parsed("--standalone --rdzv-endpoint=h:1 p").warnings,
                ElementsAre(HasSubstr("not used")));
}

// One line that names the option and the mend.
TEST(Options, Refusals) {
    struct Row {
        const char* line;
        const char* sentence;
    };
    for (const Row& row : {
             Row{"--nproc-per-node=four p",
                 "--nproc-per-node=four: not a number; give a count, auto, gpu or cpu"},
             Row{"--nproc_per_node= p",
                 "--nproc_per_node=: nothing behind it; is a variable of the script not set?"},
             Row{"--max-restarts=-1 p",
                 "--max-restarts=-1: not a number of restarts; give 0 or more, or auto"},
             Row{"--bogus p",
                 "--bogus: no such option; see --help (options of the program stand behind it)"},
             Row{"-x p", "-x: no such option; see --help (options of the program stand behind it)"},
             Row{"--rdzv-e", "--rdzv-e: its value is missing; write --rdzv-e=HOST[:PORT]"},
             Row{"--nnodes --standalone p",
                 "--nnodes: its value is missing; write --nnodes=N|MIN:MAX"},
             Row{"--standalone=1 p", "--standalone=1: takes no value; write --standalone alone"},
             Row{"--n=1 p",
                 "--n: ambiguous; write --nnodes, --nproc-per-node, --node-rank, --no-label, "
                 "--no-python or "
                 "--numa-binding"},
             Row{"", "no program is given; write ddprun [OPTIONS] PROGRAM [ARGUMENTS], see --help"},
             Row{"--standalone --nnodes=2 p",
                 "--standalone is for one node, but --nnodes asks for 2; leave one of them out"},
             Row{"-m --no-python p",
                 "--module and --no-python contradict each other; give one of them"},
             Row{"--rdzv-backend=etcd p",
                 "--rdzv-backend=etcd: not a rendezvous of ours; leave the option out, or give "
                 "c10d or static"},
             Row{"--lease=1 p", "--lease=1: too short; give 2 seconds or more"},
             Row{"--rdzv-endpoint 10.0.0.1 10.1.0.1:29500 p",
                 "--rdzv-endpoint has two addresses, the second of them (10.1.0.1:29500) stands "
                 "where the program "
                 "should; give one, or under Slurm leave the option out"},
         })
        EXPECT_EQ(refusal(row.line), row.sentence);
}

// Help wins over all that is wrong, and is made from the table: every option stands in it.
TEST(Options, HelpNamesEveryOption) {
    EXPECT_TRUE(parsed("--help --nnodes=x").help);
    EXPECT_TRUE(parsed("-h", {{"PET_NNODES", "x"}}).help);
    EXPECT_TRUE(parsed("--version").version);
    std::string help = help_text();
    for (const OptionRow& row : option_table())
        EXPECT_THAT(help, HasSubstr("--" + std::string(row.name)));
    EXPECT_THAT(help, HasSubstr("0 when called as torchrun"));
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 115u) << line;
}

// Each option of the table has a reader: an empty or odd value never ends the process.
TEST(Options, EveryOptionCanBeGiven) {
    for (const OptionRow& row : option_table()) {
        std::string option = "--" + std::string(row.name);
        (void)parse_options({row.kind == OptionKind::flag ? option : option + "=1", "p"}, {});
        (void)parse_options({"p"}, {{pet_variable(row), "1"}});
    }
    EXPECT_EQ(pet_variable(option_table()[1]), "PET_NPROC_PER_NODE");
}

}  // namespace
}  // namespace ddprun::launcher
