// The store's decoder under any bytes in any pieces: it reads the same requests whatever the pieces,
// what it reads encodes to the same bytes again, and it never keeps more memory than it says.
//
// The first byte of the input says which dialect is known beforehand, the second how the rest is cut.
#include <cstdlib>

#include "rendezvous/store/protocol.h"

namespace {

using namespace ddprun::store;

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
    const Limits limits{.max_key = 300, .max_value = 5000, .max_keys = 64, .max_request = 20'000};
    Memory memory{.limit = 30'000, .used = 0};
    Outcome outcome;
    {
        Decoder decoder(limits, legacy, &memory);
        while (!bytes.empty() && outcome.error.empty()) {
            const std::string_view first = bytes.substr(0, piece);
            bytes.remove_prefix(first.size());
            // To be told that a burst ended matters where dialects are guessed only.
            const auto fed = decoder.feed(first, legacy == Dialect::legacy, outcome.requests);
            if (!fed) outcome.error = fed.error().sentence();
            require(memory.used <= memory.limit + 64 * sizeof(std::string) * 2);
            require(decoder.inside_request() || !outcome.error.empty() || memory.used == 0);
            require(!decoder.progress().empty());
        }
        outcome.dialect = decoder.dialect();
    }
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
    const bool guessed = legacy == Dialect::legacy && whole.dialect != Dialect::torch_2_2;
    if (guessed) return 0;  // then the pieces tell the dialect
    require(whole == pieces);
    std::string again;
    for (const Request& request : whole.requests) again += encode(request, whole.dialect);
    require(bytes.starts_with(again));
    return 0;
}
