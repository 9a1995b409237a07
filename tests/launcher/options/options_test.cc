// From the command line and the PET_ variables to typed options, as torchrun's argparse reads them.
// Pure. What each refusal says stands in tests/data/launcher/messages.txt.
#include "launcher/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "launcher/options/option_table.h"
#include "launcher/options/product_names.h"

namespace ddprun::launcher {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A command line without quotes, split at blanks.
std::vector<std::string> words(const std::string& line) {
    std::istringstream stream(line);
    return {std::istream_iterator<std::string>(stream), {}};
}

// The options of a line that must be accepted.
Options parsed(const std::string& line, const Environment& environment = {}) {
    auto options = parse_options(words(line), environment);
    EXPECT_TRUE(options) << line << ": " << options.error();
    return options ? *options : Options();
}

// The sentence of a line that must be refused. It is always one line, since it goes into a log.
std::string refusal(const std::string& line, const Environment& environment = {}) {
    auto options = parse_options(words(line), environment);
    if (options) return "accepted";
    EXPECT_EQ(options.error().code(), ErrorCode::usage) << line;
    EXPECT_EQ(options.error().sentence().find('\n'), std::string::npos) << line;
    return options.error().sentence();
}

// Dashes and underscores, both forms of giving a value, letters with the value attached,
// abbreviations: all are in use in scripts for torchrun. If one is given twice, the last one
// counts.
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

// Options end at the program. A --nnodes behind it belongs to the program and must reach it
// unchanged.
TEST(Options, TheRestIsTheProgram) {
    Options options = parsed("--nnodes 2:4 --rdzv-endpoint=h:1 train.py --nnodes 3 -- --help -x");
    EXPECT_EQ(options.nnodes, (NodeRange{2, 4}));
    EXPECT_EQ(options.program, "train.py");
    EXPECT_THAT(options.arguments, ElementsAre("--nnodes", "3", "--", "--help", "-x"));
    EXPECT_EQ(parsed("--standalone -- --odd a").program, "--odd");
    EXPECT_THAT(parsed("p --d 3").arguments, ElementsAre("--d", "3"));
}

// Each option gets a value that is not its default, so an option that ends up in the wrong field
// shows.
TEST(Options, FieldsAreFilled) {
    Options options = parsed(
        "--node-rank 1 --rdzv-backend c10d --rdzv-endpoint h:29400 --rdzv-id 101 --rdzv-conf "
        "is_host=0 --max-restarts 3 --role X: --no-python --log-dir logs -t 3 --local-ranks-filter "
        "0,1 --local-addr 10.0.0.1 --master-addr m --master-port 29500 --ports=20000-20003 "
        "--ledger=memory --secret-file=/s --identity require --lease 20 --join-timeout=60 "
        "--last-call 5 --requeue-wait 45 --requeue-begin=2.5 --shutdown-timeout 8 --crash-loop 0 "
        "--hang-timeout 90 "
        "--blame off "
        "--slurm-env drop --python /p --no-label -q --log-line-prefix-template=${rank}: "
        "--duplicate-stdout-filters=a,,b,c --duplicate_stderr_filters d --console-overflow=drop "
        "--pty=off p");
    EXPECT_EQ(options.node_rank, 1);
    EXPECT_EQ(options.rdzv_backend, "c10d");
    EXPECT_EQ(options.rdzv_endpoint, (HostPort{"h", 29400}));
    EXPECT_EQ(options.rdzv_id, "101");
    EXPECT_EQ(options.rdzv_conf.is_host, false);
    EXPECT_EQ(options.max_restarts, 3);
    EXPECT_EQ(options.role, "X:");
    EXPECT_TRUE(options.no_python);
    EXPECT_EQ(options.log_dir, "logs");
    EXPECT_EQ(options.tee.all, (Streams{true, true}));
    EXPECT_THAT(options.local_ranks_filter, ElementsAre(0, 1));
    EXPECT_EQ(options.local_addr, "10.0.0.1");
    EXPECT_EQ(options.master_addr, "m");
    EXPECT_EQ(options.master_port, 29500);
    EXPECT_EQ(options.ports, (PortRange{20000, 20003}));
    EXPECT_EQ(options.ledger->kind, rendezvous::LedgerPlace::Kind::memory);
    EXPECT_EQ(options.secret_file, "/s");
    EXPECT_EQ(options.identity, rendezvous::IdentityMode::require);
    EXPECT_EQ(options.lease, milliseconds(20'000));
    EXPECT_EQ(options.join_timeout, milliseconds(60'000));
    EXPECT_EQ(options.last_call, milliseconds(5000));
    EXPECT_EQ(options.requeue_wait, milliseconds(45'000));
    EXPECT_EQ(options.requeue_begin, std::chrono::seconds(3)) << "Slurm's seconds are whole";
    EXPECT_FALSE(parsed("--requeue-begin=slurm p").requeue_begin);
    EXPECT_EQ(options.shutdown_timeout, milliseconds(8000));
    EXPECT_EQ(options.crash_loop, 0);
    EXPECT_EQ(options.hang_timeout, milliseconds(90'000));
    EXPECT_EQ(options.blame, false);
    EXPECT_EQ(options.slurm_env, slurm::WorkerVariables::drop);
    EXPECT_EQ(options.python, "/p");
    EXPECT_EQ(options.label, false);
    EXPECT_EQ(options.prefix_template, "${rank}:");
    // A doubled comma is a comma in the text.
    EXPECT_THAT(options.stdout_filters, ElementsAre("a,b", "c"));
    EXPECT_THAT(options.stderr_filters, ElementsAre("d"));
    EXPECT_EQ(options.console_overflow, agent::Overflow::drop);
    EXPECT_FALSE(options.pty);
    EXPECT_EQ(options.verbosity, -1);
    EXPECT_THAT(options.warnings, IsEmpty());
}

// torchrun's own log follows LOGLEVEL, so ddprun's does too. The command line counts more. The
// variable may belong to another program, so an unknown word is a warning and ends nothing.
TEST(Options, LogLevelSaysHowMuchIsSaid) {
    const auto with = [](const std::string& level, const std::string& line = "p") {
        return parsed(line, {{"LOGLEVEL", level}}).verbosity;
    };
    EXPECT_EQ(with("DEBUG"), 1);
    EXPECT_EQ(with("INFO"), 0);
    EXPECT_EQ(with("WARNING"), -1);
    EXPECT_EQ(with("ERROR"), -2);
    EXPECT_EQ(with("ERROR", "--verbose p"), 1);
    EXPECT_EQ(with("DEBUG", "--quiet p"), -1);
    EXPECT_EQ(with(""), 0);
    EXPECT_EQ(with("trace"), 0);
    EXPECT_THAT(parsed("p", {{"LOGLEVEL", "trace"}}).warnings,
                ElementsAre(HasSubstr("LOGLEVEL=trace")));
}

TEST(Options, TorchrunsVariableOfThePrefixStandsInForTheOption) {
    const Environment environment{{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "${rank} "}};
    EXPECT_EQ(parsed("p", environment).prefix_template, "${rank} ");
    EXPECT_EQ(parsed("--log-line-prefix-template=x p", environment).prefix_template, "x");
}

// torchrun reads PET_ variables for what the command line does not say. A flag is a number there:
// "yes" is refused, and an empty variable counts as not set.
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

// Options of torchrun's that mean nothing here. A script that has them must go on to work, and the
// warning says why they have no effect.
TEST(Options, IgnoredOptionsWarn) {
    EXPECT_THAT(
        parsed("--monitor_interval=1 --start-method spawn --event-log-handler=null --rdzv-conf "
               "read_timeout=60 p")
            .warnings,
        ElementsAre(
            "--monitor_interval has no effect here: ddprun notices the end of a worker immediately",
            "--start-method has no effect here: every worker is a program of its own",
            "--rdzv-conf: the key read_timeout has no effect here"));
    EXPECT_THAT(parsed("--standalone --rdzv-endpoint=h:1 p").warnings,
                ElementsAre(HasSubstr("the endpoint is ignored")));
}

// The user searches the script for the spelling in the message, so it must be the user's own. An
// empty value mostly comes from a variable that is not set.
TEST(Options, RefusalsNameTheOptionAsItWasGiven) {
    EXPECT_EQ(refusal("--nproc_per_node= p"),
              "--nproc_per_node=: the value is empty; is a variable in your script not set?");
    EXPECT_EQ(refusal("--standalone=1 p"),
              "--standalone=1: takes no value; write --standalone alone");
}

// Scripts for torchrun abbreviate by torchrun's options. A new option of ours that begins with the
// same letters must not make such a script ambiguous.
TEST(Options, AbbreviationsAreResolvedByWhatTheyMean) {
    EXPECT_EQ(parsed("--local-a=x p").local_addr, "x");
    EXPECT_EQ(parsed("--max_r=2 p").max_restarts, 2);
    EXPECT_EQ(parsed("--rdzv_b c10d p").rdzv_backend, "c10d");
    EXPECT_THAT(refusal("--log=x p"), HasSubstr("ambiguous; write --log"));
}

// As argparse does it: what stands before --help is checked, and what stands behind it is not.
TEST(Options, WhatOnlyPrintsEndsTheReading) {
    EXPECT_TRUE(parsed("--help --nnodes=x --bogus").help);
    EXPECT_TRUE(parsed("-h", {{"PET_NNODES", "x"}}).brief_help);
    EXPECT_FALSE(parsed("--help").brief_help);
    EXPECT_TRUE(parsed("--version").version);
    EXPECT_TRUE(parsed("--print-man --bogus").print_man);
    EXPECT_EQ(parsed("--print-completion=zsh --bogus").print_completion, "zsh");
    EXPECT_THAT(refusal("--bogus --help"), HasSubstr("--bogus"));
}

// torchrun's variable for the time between SIGTERM and SIGKILL. The option counts more.
TEST(Options, ShutdownTimeoutHasAVariableOfItsOwn) {
    const Environment environment{{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}};
    EXPECT_EQ(parsed("p", environment).shutdown_timeout, milliseconds(7000));
    EXPECT_EQ(parsed("--shutdown-timeout=8 p", environment).shutdown_timeout, milliseconds(8000));
    EXPECT_THAT(refusal("p", {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "x"}}),
                HasSubstr("not a number of seconds"));
}

// Options without a PET_ variable, in torchrun or here: such a variable is somebody else's.
TEST(Options, SomeHaveNoVariable) {
    const Environment environment{
        {"PET_NUMA_BINDING", "x"}, {"PET_LOGS_SPECS", "x"}, {"PET_PRINT_COMPLETION", "x"}};
    EXPECT_THAT(parsed("p", environment).warnings, IsEmpty());
}

// A check needs no program, but takes one.
TEST(Options, Check) {
    EXPECT_EQ(parsed("p").check, std::nullopt);
    EXPECT_EQ(parsed("--check").check, CheckFormat::text);
    EXPECT_EQ(parsed("--check=json --nnodes=2 p").check, CheckFormat::json);
    EXPECT_EQ(parse_options({"--check", "--dry-run", "p"}, {}).error().sentence(),
              "--check and --dry-run: give one of them");
    EXPECT_THAT(parse_options({"--check=yaml"}, {}).error().sentence(),
                HasSubstr("--check=yaml: not known; give text or json"));
}

// Without a value it is text. The next word is the program, even if it is called "json".
TEST(Options, DryRun) {
    EXPECT_EQ(parsed("p").dry_run, std::nullopt);
    const Options text = parsed("--dry-run json --x");
    EXPECT_EQ(text.dry_run, DryRunFormat::text);
    EXPECT_EQ(text.program, "json");
    EXPECT_EQ(parsed("--dry_run=json p").dry_run, DryRunFormat::json);
    EXPECT_EQ(parsed("--dry-run=json --dry-run p").dry_run, DryRunFormat::text);
    EXPECT_EQ(parsed("p", {{"PET_DRY_RUN", "json"}}).dry_run, std::nullopt);
}

// Wherever it comes from; what needs none of the product is as it is everywhere.
TEST(Options, ThoseOfAProductThatIsNotBuiltAreRefused) {
    const auto refused = [](const std::string& line, std::string_view product,
                            const Environment& environment = {}) {
        const auto options = parse_options(words(line), environment, {}, {product});
        return options ? "accepted" : options.error().sentence();
    };
    for (const auto& [option, product] : {std::pair{"--warm=auto", kWarmStarts},
                                          {"--framework-stop=auto", kWarmStarts},
                                          {"--set-aside-torn", kWarmStarts},
                                          {"--flight-recorder", kWarmStarts},
                                          {"--flight-recorder", kDiagnosis},
                                          {"--hang-timeout=auto", kDiagnosis},
                                          {"--pmi", kMpi},
                                          {"--on-event=x", kOperators},
                                          {"--ledger=etcd:h:1", kEtcd},
                                          {"--ledger=etcds:h:1", kEtcd},
                                          {"--etcd-key=x", kEtcd}}) {
        const std::string given = option, name = given.substr(0, given.find('='));
        EXPECT_EQ(refused(given + " p", product),
                  name + ": this ddprun was built without " + std::string(product));
        EXPECT_EQ(parsed(given + " p").missing.size(), 0u) << given;
    }
    EXPECT_EQ(refused("p", kMpi, {{"PET_PMI", "1"}}), "PET_PMI: this ddprun was built without MPI");
    EXPECT_EQ(refused("p", kMpi, {{"PET_PMI", "0"}}), "accepted");
    for (const char* line : {"--warm=off p", "--framework-stop=off p", "--ledger=memory p", "p"}) {
        for (const auto product : {kWarmStarts, kEtcd, kDiagnosis})
            EXPECT_EQ(refused(line, product), "accepted") << line;
    }
    EXPECT_EQ(refused("--hang-timeout=5 p", kDiagnosis), "accepted");
    const auto cold = parse_options(words("p"), {}, {}, {kWarmStarts});
    EXPECT_EQ(cold->warm, agent::warm::Mode::off) << "nor a plan that says it may be warm";
}

// Each option with an odd value, on the command line and as a variable: a refusal is right, a crash
// is not. An option that changes nothing must be declared as ignored.
TEST(Options, EveryOptionCanBeGiven) {
    for (const OptionRow& row : option_table()) {
        EXPECT_TRUE(row.set || row.kind == OptionKind::ignored) << row.name;
        EXPECT_EQ(row.placeholder.empty(), row.kind == OptionKind::flag || row.name == "use-env");
        std::string option = "--" + std::string(row.name);
        (void)parse_options({row.placeholder.empty() ? option : option + "=1", "p"}, {});
        (void)parse_options({"p"}, {{pet_variable(row), "1"}});
    }
    EXPECT_EQ(pet_variable(option_row("nproc-per-node")), "PET_NPROC_PER_NODE");
}

}  // namespace
}  // namespace ddprun::launcher
