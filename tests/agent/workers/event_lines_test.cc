// What becomes of the events that a worker does not read.
#include "agent/workers/event_lines.h"

#include <gtest/gtest.h>

#include <string>

namespace ddprun::agent {
namespace {

using Taken = EventLines::Taken;

// A reader with room for so many bytes.
struct Reader {
    std::size_t room = 1000;
    bool closed = false;
    int calls = 0;
    std::string got = {};
    Taken operator()(std::string_view text) {
        ++calls;
        if (closed) return Taken::closed;
        if (text.size() > room) return Taken::no_room;
        room -= text.size();
        got += text;
        return Taken::all;
    }
};

TEST(EventLines, CountWhatHasNoRoom) {
    EventLines lines;
    Reader reader{.room = 4};
    const auto push = [&](const char* line) {
        lines.push(line, [&](std::string_view text) { return reader(text); });
    };
    for (const char* line : {"one", "two", "three"}) push(line);
    EXPECT_EQ(reader.got, "one\n");
    reader.room = 10;  // for a line, and not for the number before it
    push("four");
    EXPECT_EQ(reader.got, "one\n") << "the number comes before the line that follows the gap";
    reader.room = 100;
    push("five");
    push("six");
    EXPECT_EQ(reader.got, "one\n{\"event\":\"lost\",\"lost\":3}\nfive\nsix\n");
}

TEST(EventLines, NothingIsSentToAReaderThatHasClosed) {
    EventLines lines;
    Reader reader{.closed = true};
    for (int i = 0; i < 3; ++i)
        lines.push("one", [&](std::string_view text) { return reader(text); });
    EXPECT_EQ(reader.calls, 1);
    EXPECT_TRUE(lines.closed());
}

}  // namespace
}  // namespace ddprun::agent
