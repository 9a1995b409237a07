// Configuration files: TOML with the names of options, below the variables and the command line.
// Pure.
#include "launcher/options/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/options/options.h"

namespace ddprun::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Options with the user's file of this text.
Result<Options> with(const std::string& text, const std::vector<std::string>& words = {"p"},
                     const Environment& environment = {}) {
    return parse_options(words, environment,
                         {.site = {}, .own = ConfigFile{"my.toml", text}, .warnings = {}});
}

std::string refusal_of_file(const std::string& text) {
    const auto options = with(text);
    if (options) return "accepted";
    EXPECT_EQ(options.error().code(), ErrorCode::usage);
    EXPECT_EQ(options.error().sentence().find('\n'), std::string::npos);
    return options.error().sentence();
}

// Every type of TOML that an option can have, and both spellings of a name.
TEST(ConfigFile, ValuesAreThoseOfTheOptions) {
    const Options options = with(
                                "# of the group\nnproc_per_node = 4\nlease = 2.5\n"
                                "identity = \"require\"\nno-label = true\nstandalone = false\n"
                                "requeue-signal = [\"USR1\", \"USR2\"]\nnnodes = \"2:4\"\n")
                                .value();
    EXPECT_EQ(options.nproc_per_node->count, 4);
    EXPECT_EQ(options.lease, std::chrono::milliseconds(2500));
    EXPECT_EQ(options.identity, rendezvous::IdentityMode::require);
    EXPECT_EQ(options.label, false);
    EXPECT_FALSE(options.standalone);
    EXPECT_EQ(options.requeue_signals.size(), 2u);
    EXPECT_EQ(options.nnodes, (NodeRange{2, 4}));
}

// The file of a site may be newer than a user's own ddprun. Its values must still be right.
TEST(ConfigFile, UnknownKeysOfTheSiteAreWarnings) {
    const auto site = [](const std::string& text) {
        return parse_options({"p"}, {},
                             {.site = ConfigFile{"site.toml", text}, .own = {}, .warnings = {}});
    };
    const auto options = site("new-option = true\nlease = 20\ndry-run = \"text\"\n[part]\na = 1\n");
    ASSERT_TRUE(options) << options.error().sentence();
    EXPECT_EQ(options->lease, std::chrono::seconds(20));
    EXPECT_THAT(options->warnings,
                ElementsAre(HasSubstr("site.toml:3: dry-run: this option can be on the command"),
                            HasSubstr("site.toml:1: new-option: no such option"),
                            HasSubstr("site.toml:4: part: is a table")));
    EXPECT_THAT(options->warnings[1], HasSubstr("the line has no effect"));
    EXPECT_THAT(site("lease = \"x\"\n").error().sentence(), HasSubstr("site.toml:1: lease"));
    EXPECT_THAT(site("lease =").error().sentence(),
                HasSubstr("; DDPRUN_SITE_CONFIG=none starts without this file"));
}

// The one who reads the message has the file open: it names file, line and key, and the nearest
// name.
TEST(ConfigFile, AMistakeIsNamedWithItsLine) {
    EXPECT_EQ(refusal_of_file("lease = 20\nnproc-per-nod = 4\n"),
              "my.toml:2: nproc-per-nod: no such option; did you mean nproc-per-node?");
    EXPECT_EQ(refusal_of_file("num_processes = 4"),
              "my.toml:1: num_processes: no such option; did you mean nproc-per-node?");
    EXPECT_THAT(refusal_of_file("frobnicate = 4"),
                HasSubstr("my.toml:1: frobnicate: no such option; the"));
    EXPECT_THAT(refusal_of_file("\nnnodes = \"many\""), HasSubstr("my.toml:2: nnodes=many: "));
    EXPECT_EQ(refusal_of_file("identity = \"requir\""),
              "my.toml:1: identity=requir: not known; did you mean require?");
    EXPECT_THAT(refusal_of_file("standalone = 1"),
                HasSubstr("my.toml:1: standalone: takes no value; give"));
    EXPECT_THAT(refusal_of_file("lease = true"),
                HasSubstr("my.toml:1: lease: give a text or a number"));
    EXPECT_THAT(refusal_of_file("lease = [1, 2]"),
                HasSubstr("my.toml:1: lease: give one text or one"));
    EXPECT_THAT(refusal_of_file("lease = 1979-05-27"),
                HasSubstr("my.toml:1: lease: give one text"));
    EXPECT_THAT(refusal_of_file("requeue-signal = [[\"USR1\"]]"),
                HasSubstr("texts and numbers only"));
    EXPECT_THAT(refusal_of_file("role = \"\""), HasSubstr("my.toml:1: role: the value is empty"));
    EXPECT_THAT(refusal_of_file("[meeting]\nlease = 20"),
                HasSubstr("my.toml:1: meeting: is a table"));
    EXPECT_THAT(refusal_of_file("dry-run = \"json\""),
                HasSubstr("dry-run: this option can be on the"));
    EXPECT_THAT(refusal_of_file("lease = 20\nlease 30"), HasSubstr("my.toml:2: not TOML: "));
}

// site < file < environment < command line. A stronger source hides a weaker one, even a wrong
// value there.
TEST(ConfigFile, TheStrongerSourceWins) {
    const ConfigFiles files{
        .site = ConfigFile{"/etc/s.toml",
                           "lease = 11\njoin-timeout = 11\nlast-call = 11\n"
                           "crash-loop = 11\nstandalone = true\nrole = \"\\u00e9\""},
        .own = ConfigFile{"my.toml",
                          "join-timeout = 12\nlast-call = 12\ncrash-loop = -5\n"
                          "standalone = false"},
        .warnings = {"w"}};
    const Options options =
        parse_options({"--crash_loop=14", "p"}, {{"PET_LAST_CALL", "13"}}, files).value();
    EXPECT_EQ(options.lease, std::chrono::seconds(11));
    EXPECT_EQ(options.join_timeout, std::chrono::seconds(12));
    EXPECT_EQ(options.last_call, std::chrono::seconds(13));
    EXPECT_EQ(options.crash_loop, 14);
    EXPECT_FALSE(options.standalone);
    EXPECT_THAT(options.warnings, ElementsAre("w"));
    std::vector<std::string> origins;
    for (const OptionOrigin& one : options.origins)
        origins.push_back(std::string(one.row->name) + " " + one.value + " " +
                          to_string(one.source) + " " + one.where);
    EXPECT_THAT(
        origins,
        ElementsAre("lease 11 site /etc/s.toml:1", "join-timeout 12 file my.toml:1",
                    "last-call 13 environment PET_LAST_CALL",
                    "crash-loop 14 command_line --crash_loop", "role \xc3\xa9 site /etc/s.toml:6"));
}

// torchrun's own variables are stronger than a file, and weaker than their options.
TEST(ConfigFile, TorchrunsVariablesWinOverAFile) {
    const std::string file =
        "log-line-prefix-template = \"file\"\nshutdown-timeout = 1\nquiet = true";
    const Environment environment{{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "variable"},
                                  {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "2"},
                                  {"LOGLEVEL", "INFO"}};
    Options options = with(file, {"p"}, environment).value();
    EXPECT_EQ(options.prefix_template, "variable");
    EXPECT_EQ(options.shutdown_timeout, std::chrono::seconds(2));
    EXPECT_EQ(options.verbosity, 0);
    options = with(file, {"--shutdown-timeout=3", "p"}, environment).value();
    EXPECT_EQ(options.shutdown_timeout, std::chrono::seconds(3));
}

// The file is read before the options are, so its name is looked for first.
TEST(ConfigFile, ItsNameIsFound) {
    const Environment environment{{"DDPRUN_CONFIG", "v.toml"}};
    EXPECT_EQ(config_named({"p", "--config=x"}, {}), "");
    EXPECT_EQ(config_named({"p"}, environment), "v.toml");
    EXPECT_EQ(config_named({"--config", "c.toml", "p"}, environment), "c.toml");
    // Help must not need the file.
    EXPECT_EQ(config_named({"--config", "c.toml", "--help"}, environment), "");
}

}  // namespace
}  // namespace ddprun::launcher
