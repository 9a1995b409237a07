// A double of NCCL's RAS: a job as RAS knows it, and its answers in the words of different
// versions. Written after NCCL's sources.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ddprun::test {

struct PlayedProcess {
    std::string host = "127.0.0.1";
    std::int64_t pid = 0;
    bool silent = false, dead = false;
    bool answers() const { return !silent && !dead; }
};

struct PlayedCommunicator {
    std::uint64_t hash = 0;
    std::vector<int> members;  // processes, by rank
    // By operation, of each rank.
    std::map<std::string, std::vector<std::uint64_t>> launched;
    std::set<int> absent = {};       // ranks
    std::map<int, int> errors = {};  // ncclResult_t, by rank
};

struct PlayedJob {
    std::vector<PlayedProcess> processes;
    std::vector<PlayedCommunicator> communicators;
};

enum class PlayedVersion { v2_24, v2_27, v2_29 };

// What the client gets for these lines, to the end of the connection.
std::string ras_replies(const PlayedJob& job, PlayedVersion version, const std::string& lines);
std::string ras_json(const PlayedJob& job);
std::string ras_text(const PlayedJob& job, PlayedVersion version, bool verbose = true);

}  // namespace ddprun::test
