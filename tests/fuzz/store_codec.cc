// Fuzz target: the store's decoder under any bytes in any pieces. It must read the same requests
// whatever the pieces, what it reads must encode to the same bytes again, and it must never keep
// more memory than it counts. Any process that reaches the port may send such bytes.
//
// The first byte of the input chooses the dialect that is known beforehand, the second byte the
// size of the pieces.
#include <cstdlib>

#include "store/protocol/protocol.h"

namespace {

using namespace ddprun::store;

// All that one decoding gives. Two decodings of the same bytes are compared as a whole.
struct Outcome {
    std::vector<Request> requests;
    std::string error;
    Dialect dialect = Dialect::unknown;
    bool operator==(const Outcome&) const = default;
};

void require(bool holds) {
    if (!holds) std::abort();
}

Outcome decode(std::string_view bytes, std::size_t piece, Dialect legacy) {
    // Far below the defaults, so that short inputs reach the limits.
    const Limits limits{.max_key = 300, .max_value = 5000, .max_keys = 64, .max_request = 20'000};
    Memory memory{.limit = 30'000, .used = 0};
    Outcome outcome;
    {
        Decoder decoder(limits, legacy, &memory);
        while (!bytes.empty() && outcome.error.empty()) {
            const std::string_view first = bytes.substr(0, piece);
            bytes.remove_prefix(first.size());
            // The end of a read matters only if the dialect is guessed.
            const auto fed = decoder.feed(first, legacy == Dialect::legacy, outcome.requests);
            if (!fed) outcome.error = fed.error().sentence();
            // The limit is checked for the bytes of texts, not for the objects that hold them: 64
            // keys and 64 values at most.
            require(memory.used <= memory.limit + 64 * sizeof(std::string) * 2);
            // Between two requests nothing is kept.
            require(decoder.inside_request() || !outcome.error.empty() || memory.used == 0);
            require(!decoder.progress().empty());
        }
        outcome.dialect = decoder.dialect();
    }
    // Also when the connection ends in the middle of a request.
    require(memory.used == 0);
    return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    if (size < 2) return 0;
    constexpr Dialect kKnown[] = {Dialect::legacy, Dialect::torch_1_13, Dialect::torch_2_1};
    const Dialect legacy = kKnown[data[0] % 3];
    const std::size_t piece = data[1] % 64 + 1;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
    const Outcome whole = decode(bytes, bytes.size(), legacy);
    const Outcome pieces = decode(bytes, piece, legacy);
    // The decoder guesses between torch 1.13 and 2.1 by how the bytes arrive, so other pieces may
    // give other requests. There is nothing to compare then.
    const bool guessed = legacy == Dialect::legacy && whole.dialect != Dialect::torch_2_2;
    if (guessed) return 0;
    require(whole == pieces);
    std::string again;
    for (const Request& request : whole.requests) again += encode(request, whole.dialect);
    // Not equal: the last request may be incomplete.
    require(bytes.starts_with(again));
    return 0;
}
