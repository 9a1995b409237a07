// All that ddprun says about a command line, as a golden file: each case is a command behind a
// dollar sign, and below it what is said, up to an empty line. A reader of the file sees each
// sentence as a user does. GPUS=2 gives the host two GPUs, DARK=1 hides its CPUs, SRUN=1 stands for
// a step of two nodes. With DDPRUN_REWRITE=1 the file is written anew, to be read as a diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "launcher/plan/make_plan.h"
#include "launcher/plan/step_to_come.h"
#include "slurm/launch_shape.h"

namespace ddprun::launcher {
namespace {

constexpr const char* kFile = DDPRUN_TEST_DATA "/launcher/messages.txt";

// As a shell splits it. Only single quotes are known here.
std::vector<std::string> shell_words(const std::string& line) {
    std::vector<std::string> words;
    bool quoted = false, in_word = false;
    for (char c : line) {
        if (c == '\'') {
            quoted = !quoted;
            if (!in_word) words.emplace_back(), in_word = true;
        } else if (c == ' ' && !quoted) {
            in_word = false;
        } else {
            if (!in_word) words.emplace_back(), in_word = true;
            words.back() += c;
        }
    }
    return words;
}

// The same host for all cases, so that a sentence never depends on the machine of the test.
HostFacts host_of(const Environment& environment) {
    HostFacts host;
    host.hostname = "n1";
    host.cpus = 8;
    if (auto gpus = environment.find("GPUS"); gpus != environment.end())
        host.gpus.resize(std::stoul(gpus->second));
    if (auto list = environment.find("CUDA_VISIBLE_DEVICES"); list != environment.end())
        host.cuda_visible_devices = list->second;
    if (!environment.contains("DARK"))
        for (int cpu = 0; cpu < host.cpus; ++cpu)
            host.cpu_list.push_back({.number = cpu, .core = cpu});
    host.interfaces = {{"lo", "127.0.0.1"}, {"ib0", "10.0.0.5"}};
    host.working_directory = "/home/user";
    host.random_id = "random";
    return host;
}

// The variables that srun sets on the first of two nodes. What a case gives itself stays.
void add_step(Environment& environment) {
    if (!environment.erase("SRUN")) return;
    for (const auto& [name, value] : Environment{{"SLURM_JOB_ID", "7"},
                                                 {"SLURM_STEP_ID", "0"},
                                                 {"SLURM_PROCID", "0"},
                                                 {"SLURM_NODEID", "0"},
                                                 {"SLURM_LOCALID", "0"},
                                                 {"SLURM_STEP_NUM_NODES", "2"},
                                                 {"SLURM_STEP_NUM_TASKS", "2"},
                                                 {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                                 {"SLURM_STEP_NODELIST", "n[1-2]"},
                                                 {"SLURMD_NODENAME", "n1"}})
        environment.try_emplace(name, value);
}

// What main() does before it needs a real host.
Result<Plan> plan_of(const std::vector<std::string>& words, const Environment& environment) {
    auto options = parse_options(words, environment);
    if (!options) return options.error();
    auto allocation = slurm::read_allocation(environment);
    if (!allocation) return allocation.error();
    auto shape = slurm::check_launch_shape(environment, *allocation, shape_asked(*options));
    if (!shape) return shape.error();
    const bool in_step = shape->kind == slurm::LaunchShape::Kind::in_step;
    return make_plan(*options, in_step ? *allocation : std::nullopt, host_of(environment));
}

// The refusal, or all warnings. Words before "ddprun" are variables, as in a shell.
std::string said_about(const std::string& command) {
    std::vector<std::string> words = shell_words(command);
    Environment environment;
    std::size_t at = 0;
    for (; at < words.size() && words[at] != "ddprun"; ++at) {
        const auto sign = words[at].find('=');
        environment[words[at].substr(0, sign)] = words[at].substr(sign + 1);
    }
    add_step(environment);
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at + 1));
    auto plan = plan_of(words, environment);
    if (!plan) return plan.error().sentence() + "\n";
    std::string text;
    for (const std::string& warning : plan->warnings) text += "warning: " + warning + "\n";
    for (const std::string& warning : plan->host_warnings) text += "warning: " + warning + "\n";
    return text.empty() ? "(nothing)\n" : text;
}

// A sentence that changes shows here, with the command that causes it. The file is read as a diff
// then.
TEST(Messages, AreThoseOfTheGoldenFile) {
    std::ifstream file(kFile);
    ASSERT_TRUE(file) << kFile;
    std::string rewritten, command, expected;
    int cases = 0;
    // A case is complete when the next one, a heading, or the end of the file comes.
    const auto check = [&] {
        if (command.empty()) return;
        const std::string said = said_about(command);
        EXPECT_EQ(said, expected) << "$ " << command;
        rewritten += "$ " + command + "\n" + said + "\n";
        command.clear(), expected.clear(), ++cases;
    };
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("$ ")) {
            check();
            command = line.substr(2);
        } else if (line.starts_with("# ")) {
            check();
            rewritten += line + "\n\n";
        } else if (!line.empty()) {
            expected += line + "\n";
        }
    }
    check();
    // A file that is cut or misread must not pass as a success.
    EXPECT_GT(cases, 90);
    if (std::getenv("DDPRUN_REWRITE")) std::ofstream(kFile) << rewritten;
}

// House rules for sentences: short, and without a full stop, since they stand in log lines. A
// broken rule shows here before a reader sees it.
TEST(Messages, AreOneLineThatSaysWhatToDo) {
    std::ifstream file(kFile);
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.starts_with("$ ") || line.starts_with("# ")) continue;
        EXPECT_LT(line.size(), 300u) << line;
        EXPECT_NE(line.back(), '.') << line;
    }
}

}  // namespace
}  // namespace ddprun::launcher
