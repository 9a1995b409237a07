// What ddprun and its keeper say to each other: packets on a SOCK_SEQPACKET socketpair, with
// descriptors beside them.
//
// A packet is one fixed struct, so that it arrives whole; what has no fixed size (argv and
// environment may be a few MiB) lies in a memfd that travels with it. Both ends are the same binary
// of the same moment: no versions, no byte order. Used by both processes; no state, no thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent::keeper {

inline constexpr int kMaxExtra = 8;
inline constexpr int kMaxFds = 4 + kMaxExtra;

enum class RequestKind : std::uint32_t {
    fork,      // start a worker; payload: see WorkerPayload; fds: payload, stdin, stdout, stderr,
               // extra…
    deadline,  // time_ns (kNever: none), lease_ns
    noticed,   // time_ns: when ddprun said so. It knows of the deadlines before that moment
    sweep,     // kill all that is left; answered by swept
    prepare,   // payload: the Gone frame; fds: payload, then link and listener as `present` says
    folder,    // payload: path of a folder that goes when ddprun is gone
    shutdown,  // sweep, and end without a word; answered by swept
};

struct Request {
    RequestKind kind{};
    std::uint32_t id = 0;  // of fork and sweep; comes back in the reply
    std::int64_t time_ns = 0;
    std::int64_t lease_ns = 0;
    std::uint64_t nofile_soft = 0;  // 0: leave it
    std::uint32_t argc = 0, envc = 0, cpus = 0;
    std::uint32_t payload_bytes = 0;
    std::uint32_t foreground = 0;                // in ddprun's session …
    std::uint32_t in_front = 0;                  // … and to hold the terminal at once
    std::uint32_t present = 0;                   // bit i: fd i behind the payload's is there
    std::int32_t extra_numbers[kMaxExtra] = {};  // of the extra fds, in order
    std::uint32_t extras = 0;
};

enum class ReplyKind : std::uint32_t {
    forked,   // id, pid; fd: pidfd, if the kernel has them. The program runs
    failed,   // id, error (errno), stage
    exited,   // pid, wait_status, time_ns
    stopped,  // pid, of a worker at a terminal; wait_status: by which signal
    swept,    // id
    passed,   // the deadline did; to be answered by noticed
    expired,  // … and everything is killed
};

// How far a worker came that could not be started.
enum class Stage : std::uint32_t {
    request,
    fork,
    descriptors,
    directory,
    cpus,
    limits,
    deadline,
    exec
};

struct Reply {
    ReplyKind kind{};
    std::uint32_t id = 0;
    std::int32_t pid = 0;
    std::int32_t wait_status = 0;
    std::int32_t error = 0;
    Stage stage{};
    std::int64_t time_ns = 0;
};

// The part of a fork request without a fixed size: CPU numbers, then texts ended by NUL: argv,
// environment, directory.
struct WorkerPayload {
    std::vector<std::int32_t> cpus;
    std::vector<const char*> argv, environment;  // ended by null; point into `bytes`
    const char* cwd = "";
    std::vector<char> bytes;
};

// A memfd that holds these bytes. Possible errors: internal.
Result<UniqueFd> make_payload(const std::string& bytes);
// Reads what make_payload wrote. False: not that many bytes are there.
bool read_payload(int fd, std::size_t bytes, std::vector<char>& out);
// Cuts a fork request's payload. False: it is not what the request says.
bool parse_payload(const Request& request, int fd, WorkerPayload& out);

enum class Transfer {
    done,
    would_block,  // wait for the socket
    ended,        // the other side is gone
};
// Neither waits, and neither raises SIGPIPE.
Transfer send_packet(int socket, const void* bytes, std::size_t size, const std::vector<int>& fds);
// `fds` gets all that came, close-on-exec. A packet of another size than `size` counts as ended.
Transfer receive_packet(int socket, void* bytes, std::size_t size, std::vector<UniqueFd>& fds);

}  // namespace ddprun::agent::keeper
