// The two forms of a log line (log_line.h), and the time in them (utc_text.h). Pure.
#include "base/log_line.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/utc_text.h"
#include "tests/support/builders.h"

namespace ddprun {
namespace {

const Note kNote{Note::Level::warn, "node n2 is \"gone\"\x1b[2J"};

// Text from outside must not rule the terminal.
TEST(LogLine, IsASentenceForPeople) {
    EXPECT_EQ(log_line({.name = "ddprun n1", .node = "n1"}, Duration{0}, kNote),
              "ddprun n1: warning: node n2 is \"gone\"\\x1b[2J\n");
    EXPECT_EQ(log_line({.name = "ddprun", .node = "n1", .times = true},
                       std::chrono::milliseconds(1'250), {Note::Level::info, "up"}),
              "1970-01-01T00:00:01.250Z ddprun: up\n");
    EXPECT_EQ(log_line({.name = "ddprun", .node = "n1"}, Duration{0}, {Note::Level::error, "no"}),
              "ddprun: error: no\n");
}

// A collector of logs reads one object a line, whatever is in the sentence.
TEST(LogLine, IsAnObjectForPrograms) {
    const LogStyle style{.name = "ddprun n1", .node = "n1", .json = true};
    const std::string line = log_line(style, Duration{0}, kNote);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_EQ(nlohmann::json::parse(line), nlohmann::json({{"time", "1970-01-01T00:00:00.000Z"},
                                                           {"level", "warning"},
                                                           {"node", "n1"},
                                                           {"message", kNote.sentence}}));
    const auto bytes =
        nlohmann::json::parse(log_line(style, Duration{0}, {Note::Level::info, "\xff\n"}));
    EXPECT_EQ(bytes["message"], "\xef\xbf\xbd\n");
    const auto failed = nlohmann::json::parse(
        log_line(style, Duration{0}, {Note::Level::error, "it failed"}, R"({"exit_code": 3})"));
    EXPECT_EQ(failed["report"]["exit_code"], 3);
}

// The second one is cut and not rounded: a rounded time could lie in the next day.
TEST(UtcText, IsATimeOfDay) {
    EXPECT_EQ(utc_text(Duration{0}), "1970-01-01T00:00:00.000Z");
    EXPECT_EQ(utc_text(test::sec(951'782'399.9996)), "2000-02-28T23:59:59.999Z");
}

}  // namespace
}  // namespace ddprun
