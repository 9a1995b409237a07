// Fuzz target: the store's decoder and its key-value machine together, under any bytes from three
// connections. Every answer must be that of the naive store (tests/store/naive_store.h).
// When all is closed and taken out, the counted memory must be zero again: memory that stays
// counted would make a long job refuse requests.
//
// The input is a row of pieces: one byte for connection and length, then that many bytes. A piece
// of length 0 closes the connection, and the next piece with its number belongs to a new one.
#include <cstdlib>
#include <memory>

#include "tests/store/side_by_side.h"

namespace {

using namespace ddprun::store;
using test::SideBySide;

struct Connection {
    std::uint64_t id = 0;
    // Null: the connection is closed.
    std::unique_ptr<Decoder> decoder;
};

// Far below the defaults, so that short inputs reach the limits.
constexpr Limits kLimits{.max_key = 300, .max_value = 5000, .max_keys = 64, .max_request = 20'000};

void close(Connection& connection, SideBySide& both) {
    both.closed(connection.id);
    connection.decoder.reset();
}

void receive(Connection& connection, std::string_view bytes, SideBySide& both) {
    std::vector<Request> requests;
    // `true` says that the bytes are a whole read. It lets the decoder tell old dialects apart.
    const auto decoded = connection.decoder->feed(bytes, true, requests);
    for (const Request& request : requests) {
        const SideBySide::Verdict verdict = both.ask(connection.id, request);
        if (verdict == SideBySide::Verdict::differ) std::abort();
        // What follows a refused request is not answered, as in the server.
        if (verdict == SideBySide::Verdict::refused) return close(connection, both);
    }
    if (!decoded) close(connection, both);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    std::string_view input(reinterpret_cast<const char*>(data), size);
    SideBySide both;
    // Three are enough for requests that involve others: two wait or watch, and one sets.
    Connection connections[3];
    std::uint64_t last_id = 0;
    while (!input.empty()) {
        const auto head = static_cast<unsigned char>(input.front());
        Connection& connection = connections[head % 3];
        const std::size_t length = head / 3;
        input.remove_prefix(1);
        if (length == 0) {
            if (connection.decoder) close(connection, both);
            continue;
        }
        if (!connection.decoder) {
            connection.id = ++last_id;
            connection.decoder = std::make_unique<Decoder>(kLimits);
        }
        const std::string_view piece = input.substr(0, length);
        input.remove_prefix(piece.size());
        receive(connection, piece, both);
    }
    for (Connection& connection : connections) both.closed(connection.id);
    if (both.used_when_emptied() != 0) std::abort();
    return 0;
}
