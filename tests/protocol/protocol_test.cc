// The rules of rendezvous/PROTOCOL.md as scripts that any reader can follow and rewrite: one file
// for each rule, in scripts/. README.md explains the lines. With DDPRUN_REWRITE=1 the effects are
// written as they are, to be read as a diff.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <variant>

#include "tests/protocol/leader_stage.h"
#include "tests/protocol/node_stage.h"

namespace ddprun::protocol_test {
namespace {

const std::filesystem::path kScripts = DDPRUN_SCRIPTS;
const std::string kEffect = "        ";  // before a line that the machine must give

std::vector<std::string> scripts() {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(kScripts))
        if (file.path().extension() == ".txt") names.push_back(file.path().stem());
    std::ranges::sort(names);
    return names;
}

// One script. `line` is an event, a rule's head, a comment, or empty; all other lines are effects.
class Play {
  public:
    Lines line(const std::string& line) {
        if (line.empty() || line.starts_with("#")) return {};
        if (line.starts_with("rule ")) {
            stage_.emplace<std::monostate>();
            return {};
        }
        const Words words(line);
        Lines effects;
        if (words.word(0) == "leader") {
            effects = stage_.emplace<LeaderStage>(words).begin();
            words.expect_all_used();
        } else if (words.word(0) == "node") {
            stage_.emplace<NodeStage>(words);
        } else {
            const std::size_t space = line.find(' ');
            effects = play(std::stod(line.substr(0, space)), Words(line.substr(space)));
        }
        return effects;
    }

  private:
    Lines play(double now, const Words& words) {
        Lines effects;
        if (auto* leader = std::get_if<LeaderStage>(&stage_))
            effects = leader->play(now, words);
        else if (auto* node = std::get_if<NodeStage>(&stage_))
            effects = node->play(now, words);
        else
            throw std::invalid_argument("neither `leader` nor `node` comes before this line");
        words.expect_all_used();
        return effects;
    }

    std::variant<std::monostate, LeaderStage, NodeStage> stage_;
};

class Protocol : public testing::TestWithParam<std::string> {};

TEST_P(Protocol, DoesWhatTheScriptSays) {
    const auto path = kScripts / (GetParam() + ".txt");
    std::ifstream file(path);
    std::string is, must;
    Play play;
    int number = 0, events = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        must += line + "\n";
        if (line.starts_with(kEffect)) continue;
        is += line + "\n";
        try {
            for (const std::string& effect : play.line(line)) is += kEffect + effect + "\n";
        } catch (const std::exception& e) {
            FAIL() << path << ":" << number << ": " << line << ": " << e.what();
        }
        ++events;
    }
    // A file that is cut or misread must not pass as a success.
    EXPECT_GT(events, 3);
    if (std::getenv("DDPRUN_REWRITE")) std::ofstream(path) << is;
    EXPECT_EQ(is, must);
}

INSTANTIATE_TEST_SUITE_P(Rules, Protocol, testing::ValuesIn(scripts()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ddprun::protocol_test
