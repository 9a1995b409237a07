// What PyTorch's clients of 2.1, 2.2, 2.5 and 2.8 said to PyTorch's own server, replayed without
// sockets: the same bytes to our decoder and store must give the same answers, byte for byte.
// Recorded by tests/data/store/record.py, which needs these versions of PyTorch; the test does not.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "store/protocol/protocol.h"
#include "store/server/key_values.h"

namespace ddprun::store {
namespace {

// What the client sent until the server answered, and the answer.
struct Exchange {
    std::string sent;
    std::string answered;
};

std::string from_hex(const std::string& text) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
    return bytes;
}

// "> " is a line of the client, "< " one of the server, in hexadecimal.
std::vector<Exchange> read(const std::string& version) {
    std::ifstream file(std::string(DDPRUN_TEST_DATA) + "/store/torch-" + version + ".txt");
    std::vector<Exchange> exchanges;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("> ")) {
            exchanges.push_back({from_hex(line.substr(2)), {}});
        } else {
            exchanges.back().answered = from_hex(line.substr(2));
        }
    }
    return exchanges;
}

// One recorded connection against one decoder and one store.
class Transcript : public testing::TestWithParam<std::string> {
  protected:
    // What our store answers to `bytes` that come in pieces of `piece`. The end of the last piece
    // is a pause of the sender, as on the recorded connection.
    std::string answer(const std::string& bytes, std::size_t piece) {
        std::string said;
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
            std::vector<Request> requests;
            const bool ends = at + piece >= bytes.size();
            const Result<> fed = decoder_->feed(bytes.substr(at, piece), ends, requests);
            EXPECT_TRUE(fed) << fed.error();
            for (Request& request : requests) {
                std::vector<Reply> replies;
                const Result<> done = machine_.handle(ConnectionId(1), std::move(request), replies);
                EXPECT_TRUE(done) << done.error();
                for (const Reply& reply : replies) said += reply.flat();
            }
        }
        return said;
    }

    void replay(std::size_t piece) {
        const std::vector<Exchange> exchanges = read(GetParam());
        // A missing or cut file must fail, and not pass as an empty one.
        ASSERT_GT(exchanges.size(), 20u) << "no transcript of torch " << GetParam();
        for (std::size_t i = 0; i < exchanges.size(); ++i) {
            ASSERT_EQ(answer(exchanges[i].sent, piece), exchanges[i].answered)
                << "torch " << GetParam() << ", exchange " << i + 1;
        }
        // A request that is left over would mean that the decoder misread its length.
        EXPECT_FALSE(decoder_->inside_request());
    }

    const Limits limits_;
    std::optional<Decoder> decoder_{std::in_place, limits_};
    KeyValues machine_;
};

// One piece for each exchange, as the client sent it.
TEST_P(Transcript, IsAnsweredAsPyTorchDoes) { replay(1 << 20); }

// Byte by byte, so that every cut is tried. Guessing an old dialect needs the client's real
// packets, so for 2.1 the dialect is given here.
TEST_P(Transcript, IsAnsweredAsPyTorchDoesByteForByte) {
    if (GetParam() == "2.1") decoder_.emplace(limits_, Dialect::torch_2_1);
    replay(1);
}

INSTANTIATE_TEST_SUITE_P(Versions, Transcript, testing::Values("2.1", "2.2", "2.5", "2.8"),
                         [](const auto& info) { return "torch_2_" + info.param.substr(2); });

}  // namespace
}  // namespace ddprun::store
