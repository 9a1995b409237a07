// What NCCL's RAS answers to STATUS: which ranks of which communicator have launched fewer
// collectives than others, do not answer, or report an error. Pure values; ras_reader.h reads them.
//
// RAS is a thread of NCCL in each process of a job, from 2.24 on. It answers text for people, from
// 2.28.7 on JSON, too. JSON has all ranks. Text has only those that differ, and not by name where
// they are many; ask it for VERBOSE STATUS.
//
// Source: NCCL's own client, and what it prints in 2.24.3 to 2.30.7, and its documentation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::agent {

struct RasRank {
    int rank = -1;         // in its communicator; -1: not known
    std::string host;      // an address; empty: not known
    std::int64_t pid = 0;  // in its own container; 0: not known
    bool operator==(const RasRank&) const = default;
};

// Ranks of a communicator that have launched the same number of one operation.
struct RasSide {
    std::uint64_t count = 0;
    int size = 0;                // of them
    std::vector<RasRank> ranks;  // those that are named: in text maybe none
    bool operator==(const RasSide&) const = default;
};

struct RasCounts {
    std::string operation;       // "AllReduce"; of NCCL before 2.26: empty, all of them together
    std::vector<RasSide> sides;  // the most first; in text at least two
    bool operator==(const RasCounts&) const = default;
};

struct RasFault {
    enum class Kind {
        silent,  // its process does not answer
        dead,    // it has not for a minute
        absent,  // its process answers, and is not in the communicator (any more)
        failed,  // it reports an error
    };
    Kind kind = Kind::silent;
    RasRank who;
    std::string error = {};  // "System error"
    bool operator==(const RasFault&) const = default;
};

struct RasCommunicator {
    std::string hash;  // "ae94423cfbb2ef4a"
    int size = 0;
    bool ends = false;  // a rank finalizes or aborts it
    std::vector<RasCounts> counts;
    std::vector<RasFault> faults;
    bool operator==(const RasCommunicator&) const = default;
};

struct RasAnswer {
    std::string version;     // "2.28.7"
    bool names_all = false;  // JSON: each process of the job is in it
    int processes = 0;       // of the job
    // In text only those in which ranks differ or something is wrong.
    std::vector<RasCommunicator> communicators;
    std::vector<RasFault> processes_lost;  // silent and dead ones, of which text tells no rank
    bool operator==(const RasAnswer&) const = default;
};

}  // namespace ddprun::agent
