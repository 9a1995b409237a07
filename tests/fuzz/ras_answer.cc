// Fuzz target: what NCCL's RAS answers, with any bytes.
#include "diagnosis/nccl/ras_reader.h"

#include <cstdint>
#include <cstdlib>

namespace {

using namespace ddprun::agent;

void require(bool holds) {
    if (!holds) std::abort();
}

void require_plain(const std::string& text) {
    require(text.size() <= 64);
    for (const char c : text) require(c >= ' ' && c <= '~');
}

void require_sound(const RasRank& rank) {
    require(rank.rank >= -1 && rank.pid >= 0);
    require_plain(rank.host);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto answer = read_ras_answer({reinterpret_cast<const char*>(data), size});
    if (!answer) return 0;
    require_plain(answer->version);
    require(answer->processes >= 0);
    for (const RasFault& fault : answer->processes_lost) require_sound(fault.who);
    for (const RasCommunicator& communicator : answer->communicators) {
        require_plain(communicator.hash);
        require(communicator.size >= 0);
        for (const RasFault& fault : communicator.faults) {
            require_sound(fault.who);
            require_plain(fault.error);
        }
        for (const RasCounts& counts : communicator.counts) {
            require_plain(counts.operation);
            for (const RasSide& side : counts.sides) {
                require(side.size >= 0);
                for (const RasRank& rank : side.ranks) require_sound(rank);
            }
        }
    }
    return 0;
}
