// Frames of the agent link out of a stream of bytes. Pure, without any socket.
#include "rendezvous/wire/frame.h"

#include <gmock/gmock.h>

#include <random>

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

// The preface and these frames, as one side sends them.
std::string stream(const std::vector<std::string>& bodies) {
    std::string bytes(kPreface);
    for (const std::string& body : bodies) bytes += frame(body);
    return bytes;
}

// All whole frames that are there by now.
std::vector<std::string> drain(FrameReader& reader) {
    std::vector<std::string> bodies;
    while (true) {
        const auto body = reader.next();
        EXPECT_TRUE(body) << body.error();
        if (!body || !*body) return bodies;
        bodies.push_back(**body);
    }
}

// TCP delivers a stream in any pieces. Each cut into two, and single bytes, must give the same
// frames.
TEST(FrameReader, TakesAnyPieces) {
    // An empty frame is a frame too. 300 bytes need more than one byte of the length.
    const std::vector<std::string> bodies{"one", "", std::string(300, 'x'), "last"};
    const std::string bytes = stream(bodies);
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        FrameReader reader(1000);
        reader.add(std::string_view(bytes).substr(0, cut));
        auto got = drain(reader);
        EXPECT_LE(got.size(), bodies.size());
        reader.add(std::string_view(bytes).substr(cut));
        for (std::string& body : drain(reader)) got.push_back(std::move(body));
        EXPECT_EQ(got, bodies) << "cut at " << cut;
        EXPECT_FALSE(reader.in_the_middle());
    }
    FrameReader reader(1000);
    std::vector<std::string> got;
    for (char byte : bytes) {
        reader.add({&byte, 1});
        for (std::string& body : drain(reader)) got.push_back(std::move(body));
    }
    EXPECT_EQ(got, bodies);
}

// Something else calls the port, such as a monitoring program. It is known at the first wrong byte,
// and the log line shows how it began.
TEST(FrameReader, KnowsAStrangerByItsFirstWrongByte) {
    FrameReader reader(1000);
    reader.add("GET / HTTP/1.1\r\n");
    EXPECT_THAT(reader.next().error().sentence(),
                HasSubstr("its first bytes: \"GET / HTTP/1.1..\""));
    reader.add(stream({"right"}));
    EXPECT_FALSE(reader.next()) << "broken once is broken for ever";
    // Another version of the protocol: only the number after the name differs.
    FrameReader late(1000);
    late.add("DDPRUN\x02");
    EXPECT_FALSE(late.next());
}

// A stranger claims a frame of 1001 bytes (0x3e9). It is refused before a byte of the body has
// come, so it cannot make the reader wait or take memory.
TEST(FrameReader, RefusesAFrameAboveTheLimit) {
    FrameReader reader(1000);
    reader.add(std::string(kPreface) + std::string("\x00\x00\x03\xe9", 4));
    EXPECT_THAT(reader.next().error().sentence(), HasSubstr("1001 bytes (limit 1000)"));
    // A larger limit does not help any more: the reader is broken.
    reader.set_limit(5000);
    EXPECT_FALSE(reader.next());
}

// Random bytes in random pieces, most of them after a right preface. The result is frames or an
// error, and never more bytes than were given.
TEST(FrameReader, SurvivesRandomBytes) {
    // A fixed seed, so that a failure comes again.
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        FrameReader reader(64);
        if (round % 4 != 0) reader.add(kPreface);
        std::size_t given = 0, got = 0;
        for (int piece = 0; piece < 20; ++piece) {
            std::string bytes(random() % 40, '\0');
            // Half of the bytes are 0 or 1, so that some lengths are small enough for whole frames.
            for (char& byte : bytes) byte = static_cast<char>(random() % (random() % 2 ? 256 : 2));
            given += bytes.size();
            reader.add(bytes);
            while (true) {
                const auto body = reader.next();
                if (!body || !*body) break;
                got += (*body)->size() + 4;
            }
        }
        ASSERT_LE(got, given);
    }
}

}  // namespace
}  // namespace ddprun::rendezvous
