// Serves the double of NCCL's RAS where NCCL would: on NCCL_RAS_ADDR. It plays the job whose ranks
// write into a folder what they have launched: "PID COUNT" in rank_0, rank_1, and so on, where
// COUNT is of AllReduce. A process that is stopped does not answer, one that is gone is dead.
//
//   ras_double FOLDER RANKS [2.24|2.27|2.29 [half|garbage]]     ends with its parent
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "ras_double.h"

namespace {

using namespace ddprun::test;

PlayedJob job_in(const std::string& folder, int ranks) {
    PlayedJob job;
    PlayedCommunicator world{0x5d1c, {}, {}};
    for (int rank = 0; rank < ranks; ++rank) {
        PlayedProcess process;
        std::uint64_t count = 0;
        std::ifstream(folder + "/rank_" + std::to_string(rank)) >> process.pid >> count;
        std::string stat;
        std::getline(std::ifstream("/proc/" + std::to_string(process.pid) + "/stat"), stat);
        const std::size_t state = stat.rfind(") ");
        process.dead = state == std::string::npos;
        process.silent = !process.dead && stat[state + 2] == 'T';
        job.processes.push_back(process);
        world.members.push_back(rank);
        world.launched["AllReduce"].push_back(count);
    }
    job.communicators.push_back(world);
    return job;
}

std::string answer(const PlayedJob& job, const std::string& version, const std::string& mode,
                   const std::string& lines) {
    const PlayedVersion known = version == "2.24"   ? PlayedVersion::v2_24
                                : version == "2.27" ? PlayedVersion::v2_27
                                                    : PlayedVersion::v2_29;
    const std::string all = ras_replies(job, known, lines);
    if (mode == "half") return all.substr(0, all.size() / 2);
    if (mode == "garbage") return all.substr(0, 40) + std::string(1 << 20, '\xff');
    return all;
}

int listening(const std::string& address) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(
        static_cast<std::uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
    if (::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || ::listen(fd, 64) != 0)
        return -1;
    return fd;
}

}  // namespace

int main(int argc, char** argv) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char* address = std::getenv("NCCL_RAS_ADDR");
    const int fd = argc < 3 ? -1 : listening(address ? address : "localhost:28028");
    if (fd < 0) {
        std::cerr << "ras_double: FOLDER RANKS are missing, or NCCL_RAS_ADDR cannot be bound\n";
        return 1;
    }
    while (true) {
        const int client = ::accept(fd, nullptr, nullptr);
        if (client < 0) continue;
        char lines[1000];
        const ssize_t got = ::recv(client, lines, sizeof lines, 0);
        if (got > 0) {
            const std::string text =
                answer(job_in(argv[1], std::atoi(argv[2])), argc > 3 ? argv[3] : "2.29",
                       argc > 4 ? argv[4] : "", {lines, static_cast<std::size_t>(got)});
            (void)::send(client, text.data(), text.size(), MSG_NOSIGNAL);
        }
        ::close(client);
    }
}
