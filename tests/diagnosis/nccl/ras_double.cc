// Prints as RAS does.
#include "ras_double.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace ddprun::test {
namespace {

std::string hex(std::uint64_t number, int width = 0) {
    std::ostringstream text;
    text << std::hex << std::setfill('0') << std::setw(width) << number;
    return text.str();
}

bool is_missing(const PlayedJob& job, const PlayedCommunicator& comm, int rank) {
    const auto process = static_cast<std::size_t>(comm.members[static_cast<std::size_t>(rank)]);
    return comm.absent.contains(rank) || !job.processes[process].answers();
}

const PlayedProcess& process_of(const PlayedJob& job, const PlayedCommunicator& comm, int rank) {
    return job.processes[static_cast<std::size_t>(comm.members[static_cast<std::size_t>(rank)])];
}

int error_of(const PlayedCommunicator& comm, int rank) {
    const auto found = comm.errors.find(rank);
    return found == comm.errors.end() ? 0 : found->second;
}

std::string who(const PlayedJob& job, const PlayedCommunicator& comm, int rank) {
    const PlayedProcess& process = process_of(job, comm, rank);
    return " -- GPU " + std::to_string(rank) + " managed by process " +
           std::to_string(process.pid) + " on node " + process.host;
}

// Ranks with the same value, the most first, as RAS tells them.
using Sides = std::map<std::uint64_t, std::vector<int>>;
void print_sides(std::ostream& out, const PlayedJob& job, const PlayedCommunicator& comm,
                 const Sides& sides, bool verbose) {
    std::vector<std::pair<std::uint64_t, std::vector<int>>> all(sides.begin(), sides.end());
    std::ranges::stable_sort(all, std::greater(), [](const auto& s) { return s.second.size(); });
    const std::size_t total = comm.members.size();
    for (const auto& [count, ranks] : all) {
        const std::string launched = count > 0 ? "launched up to operation " + std::to_string(count)
                                               : "not launched any operations";
        const bool named =
            ranks.size() == 1 ||
            (verbose ? 2 * ranks.size() < total : ranks.size() <= 10 && 4 * ranks.size() <= total);
        if (ranks.size() > 1) out << "  " << ranks.size() << " ranks have " << launched << "\n";
        for (const int rank : ranks)
            if (named)
                out << "  Rank " << rank << (ranks.size() == 1 ? " has " + launched : "")
                    << who(job, comm, rank) << "\n";
    }
}

// By operation; before 2.26 one for all together.
std::map<std::string, Sides> sides_of(const PlayedJob& job, const PlayedCommunicator& comm,
                                      PlayedVersion version) {
    std::map<std::string, std::vector<std::uint64_t>> launched = comm.launched;
    if (version == PlayedVersion::v2_24) {
        std::vector<std::uint64_t> sum(comm.members.size());
        for (const auto& [operation, counts] : comm.launched)
            for (std::size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
        launched = {{"collective", sum}};
    }
    std::map<std::string, Sides> all;
    for (const auto& [operation, counts] : launched) {
        Sides sides;
        for (int rank = 0; rank < static_cast<int>(comm.members.size()); ++rank)
            if (!is_missing(job, comm, rank))
                sides[counts[static_cast<std::size_t>(rank)]].push_back(rank);
        if (sides.size() > 1) all[operation] = sides;
    }
    return all;
}

}  // namespace

std::string ras_json(const PlayedJob& job) {
    std::ostringstream out;
    out << "{\n  \"nccl_version\": \"2.29.2\",\n  \"communicators_count\": "
        << job.communicators.size() << ",\n  \"communicators\": [\n";
    for (const PlayedCommunicator& comm : job.communicators) {
        std::ostringstream ranks, missing;
        for (int rank = 0; rank < static_cast<int>(comm.members.size()); ++rank) {
            const PlayedProcess& process = process_of(job, comm, rank);
            const bool is_gone = is_missing(job, comm, rank);
            std::ostringstream& to = is_gone ? missing : ranks;
            if (!to.str().empty()) to << ",\n";
            to << "{\"rank\": " << rank << ", \"host\": \"" << process.host
               << "\", \"pid\": " << process.pid
               << ", \"cuda_dev\": 0, \"nvml_dev\": 0, \"status\": {";
            if (is_gone) {
                to << "\"unresponsive\": " << (process.answers() ? "false" : "true")
                   << ", \"considered_dead\": " << (process.dead ? "true" : "false") << "}}";
                continue;
            }
            to << "\"init_state\": 0, \"async_error\": " << error_of(comm, rank)
               << ", \"finalize_called\": false, \"destroy_flag\": false, \"abort_flag\": false},\n"
               << "\"collective_counts\": {";
            const char* comma = "";
            for (const auto& [operation, counts] : comm.launched) {
                to << comma << "\"" << operation
                   << "\": " << counts[static_cast<std::size_t>(rank)];
                comma = ", ";
            }
            to << "}}";
        }
        out << (&comm == &job.communicators.front() ? "" : ",\n") << "{\"hash\": \"0x"
            << hex(comm.hash) << "\", \"size\": " << comm.members.size() << ", \"ranks\": [\n"
            << ranks.str() << "\n],\n\"missing_ranks\": [\n"
            << missing.str() << "\n]\n}";
    }
    out << "\n  ],\n  \"ras\": {\"collection_time_sec\": 0.001, \"timeouts_count\": 0}\n}\n";
    return out.str();
}

std::string ras_text(const PlayedJob& job, PlayedVersion version, bool verbose) {
    const bool old = version == PlayedVersion::v2_24;
    std::ostringstream out, errors, warnings;
    out << "NCCL version " << (old ? "2.24.3" : "2.27.5") << " compiled with CUDA 12.9\n"
        << "CUDA runtime version 12090, driver version 12090\n\nJob summary\n===========\n\n"
        << "  Nodes  Processes         GPUs  Processes     GPUs\n"
        << "(total)   per node  per process    (total)  (total)\n"
        << "      1  " << job.processes.size() << "  1  " << job.processes.size() << "  "
        << job.processes.size() << "\n\nCommunicators... (0.00s)\n=============\n\n"
        << "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
        << "    #  in group  per comm  per node  per comm  in group\n";
    for (const bool dead : {false, true}) {
        std::ostringstream list;
        int many = 0;
        for (const PlayedProcess& process : job.processes) {
            if (dead ? !process.dead : !process.silent || process.dead) continue;
            ++many;
            list << "  Process " << process.pid << " on node " << process.host
                 << " managing GPU 0\n";
        }
        if (many > 0)
            errors << (dead ? "DEAD\n  " : "INCOMPLETE\n  Missing communicator data from ") << many
                   << " job process\n"
                   << list.str() << "\n";
    }
    int group = 0;
    for (const PlayedCommunicator& comm : job.communicators) {
        const std::string name = "#" + std::to_string(group) + "-0 (" + hex(comm.hash, 16) + ") ";
        out << "    " << group++ << "  1  1  1  " << comm.members.size() << "  "
            << comm.members.size() << "  RUNNING  OK\n";
        std::vector<int> silent, absent;
        for (int rank = 0; rank < static_cast<int>(comm.members.size()); ++rank)
            if (!process_of(job, comm, rank).answers())
                silent.push_back(rank);
            else if (comm.absent.contains(rank))
                absent.push_back(rank);
        if (!silent.empty()) {
            errors << name << "INCOMPLETE\n  Missing communicator data from " << silent.size()
                   << " ranks\n";
            for (const int rank : silent)
                errors << (old ? "  The missing rank: " + std::to_string(rank)
                               : "  Rank " + std::to_string(rank) + who(job, comm, rank))
                       << "\n";
            errors << "\n";
        }
        if (!comm.errors.empty()) {
            errors << name << "ERROR\n  Asynchronous errors\n";
            for (const auto& [rank, error] : comm.errors)
                errors << "  Rank " << rank << " reported Remote process error"
                       << who(job, comm, rank) << "\n";
            errors << "\n";
        }
        const auto differing = sides_of(job, comm, version);
        if (absent.empty() && differing.empty()) continue;
        warnings << name << "MISMATCH\n";
        if (!absent.empty()) warnings << "  Communicator ranks have different status\n";
        for (const int rank : absent)
            warnings << "  Rank " << rank << " has status " << (old ? "UNKNOWN" : "NOCOMM")
                     << who(job, comm, rank) << "\n";
        for (const auto& [operation, sides] : differing) {
            warnings << "  Communicator ranks have different " << operation
                     << " operation counts\n";
            print_sides(warnings, job, comm, sides, verbose);
        }
        warnings << "\n";
    }
    out << "\nErrors\n======\n\n" << errors.str() << "Warnings\n========\n\n" << warnings.str();
    return out.str();
}

std::string ras_replies(const PlayedJob& job, PlayedVersion version, const std::string& lines) {
    std::istringstream all(lines);
    std::string line, replies;
    bool json = false;
    while (std::getline(all, line)) {
        if (line.starts_with("CLIENT PROTOCOL ")) {
            replies += "SERVER PROTOCOL 2\n";
        } else if (line.starts_with("TIMEOUT ")) {
            replies += "OK\n";
        } else if (line == "SET FORMAT json" && version == PlayedVersion::v2_29) {
            json = true;
            replies += "OK\n";
        } else if (line == "STATUS" || line == "VERBOSE STATUS") {
            return replies +
                   (json ? ras_json(job) : ras_text(job, version, line == "VERBOSE STATUS"));
        } else {
            replies += "ERROR: Unknown command " + line + "\n";
        }
    }
    return replies;
}

}  // namespace ddprun::test
