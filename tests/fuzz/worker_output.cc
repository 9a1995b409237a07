// Fuzz target: what a worker prints, any bytes in any pieces: cut into lines with a prefix, kept
// for the report, searched for known words. The pieces must not matter, no byte may be lost, and
// the memory that is counted must be given back.
//
// The first byte of the input is the size of the pieces.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "agent/death/known_words.h"
#include "agent/output/last_lines.h"
#include "agent/output/prefixed_lines.h"

namespace {

using namespace ddprun::agent;

void require(bool holds) {
    if (!holds) std::abort();
}

// All that one reading gives. Two readings of the same bytes are compared as a whole.
struct Output {
    std::string lines, filtered;
    std::vector<std::string> last;
    bool operator==(const Output&) const = default;
};

Output read(std::string_view bytes, std::size_t piece) {
    const auto budget = std::make_shared<LineBudget>();
    Output output;
    {
        PrefixedLines splitter("p:", {}, budget), filter("f:", {"a", "Error"}, budget);
        LastLines last;
        LastLines::Stream stream;
        while (!bytes.empty()) {
            const std::string_view first = bytes.substr(0, piece);
            bytes.remove_prefix(first.size());
            output.lines += splitter.take(first);
            output.filtered += filter.take(first);
            last.take(stream, first);
        }
        output.lines += splitter.finish();
        output.filtered += filter.finish();
        last.finish(stream);
        output.last = last.lines();
        require(budget->used == 0);
    }
    return output;
}

// Without needles and prefixes every byte comes through.
std::string without_prefix(const std::string& bytes, std::size_t piece) {
    PrefixedLines splitter("", {""});
    std::string all;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        all += splitter.take(std::string_view(bytes).substr(at, piece));
    return all + splitter.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::size_t piece = data[0] + std::size_t{1};
    const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const Output whole = read(bytes, bytes.size() + 1);
    require(whole == read(bytes, piece));
    for (const std::string& line : whole.last) {
        require(!line.empty() && line.size() <= LastLines::kLongest);
        require(line.find('\n') == std::string::npos);
    }
    require(whole.last.size() <= LastLines::kCount);
    const std::string through = without_prefix(bytes, piece);
    // finish() adds the end of an unfinished line.
    require(through == bytes || through == bytes + "\n");
    (void)known_words(bytes, whole.last);
    return 0;
}
