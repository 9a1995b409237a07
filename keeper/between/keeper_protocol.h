// The messages between ddprun and its keeper: packets on a SOCK_SEQPACKET socketpair, with
// descriptors beside them (SCM_RIGHTS).
//
// Each packet is one struct of fixed size, so it arrives completely or not at all. Data without a
// fixed size (argv and environment may have several MiB) is in a memory file that travels with the
// packet. Both ends run the same binary, so there are no versions and no byte order. Used by both
// processes. No state, no thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent::keeper {

// Most extra descriptors of a worker.
inline constexpr int kMaxExtra = 8;
// Most descriptors of a packet: the payload, three standard streams, and the extra ones.
inline constexpr int kMaxFds = 4 + kMaxExtra;

// What ddprun asks for. "Payload" is the memory file, always the first descriptor.
enum class RequestKind : std::uint32_t {
    // Start a worker. Payload: see WorkerPayload. Descriptors: payload, stdin, stdout, stderr,
    // extra ones.
    fork,
    // Take a worker that a helper of ours has forked, and that is our child by now. Descriptors:
    // where it waits for a byte before it goes on. Answered by `forked` or `failed`.
    adopt,
    // New deadline: time_ns (kNever: none) and lease_ns.
    deadline,
    // ddprun knows of all deadlines before time_ns, the moment of sending.
    noticed,
    // Kill everything that is left; with `give_time` after time_ns and lease_ns (Patience).
    // Answered by `swept`.
    sweep,
    // What is left running has only lease_ns from SIGTERM to SIGKILL; 0: kill it.
    hurry,
    // Payload: the Gone frame. Descriptors: payload, then link and listener, as `present` says.
    prepare,
    // Payload: path of a folder to be removed when ddprun is gone. Descriptors: payload, then its
    // lock, if there is one.
    folder,
    // Sweep, then end without the Gone frame. Answered by `swept`.
    shutdown,
    // Does the keeper still work? Answered by `works`, at once.
    check,
};

// One packet to the keeper. Fields that a kind does not use are zero.
struct Request {
    RequestKind kind{};
    std::uint32_t id = 0;  // of fork, adopt and sweep; the reply has the same id
    std::int64_t time_ns = 0;
    std::int64_t lease_ns = 0;
    std::uint64_t nofile_soft = 0;               // soft limit of open files; 0: leave it
    std::uint32_t argc = 0, envc = 0, cpus = 0;  // number of entries in the payload
    std::uint32_t payload_bytes = 0;
    std::uint32_t give_time = 0;
    std::uint32_t leave_alone = 0;  // with `give_time`
    std::uint32_t foreground = 0;   // the worker stays in ddprun's session
    std::uint32_t spared = 0;       // sweeps leave it alone
    std::int32_t pid = 0;           // of adopt
    std::uint32_t in_front = 0;     // it becomes the foreground process group at once
    std::uint32_t present = 0;      // bit i: the i-th descriptor after the payload is there
    std::int32_t extra_numbers[kMaxExtra] = {};  // numbers of the extra descriptors in the worker
    std::uint32_t extras = 0;
};

// What the keeper reports.
enum class ReplyKind : std::uint32_t {
    forked,     // the program runs: id, pid; descriptor: pidfd, if the kernel has them
    failed,     // it could not be started: id, error (errno), stage
    exited,     // a worker was reaped: pid, wait_status, time_ns
    stopped,    // a worker at a terminal was stopped: pid, wait_status (the signal)
    signalled,  // a worker has sent the keeper a signal that is meant for ddprun: wait_status
    // Nothing is left: id; with `give_time`: count, killed, and pid and name of the first of them.
    swept,
    // With `give_time`: the sweep waits for these: count, and pid and name of the first of them.
    waits,
    passed,   // the deadline has passed; ddprun must answer with `noticed`
    expired,  // after `passed`: everything is killed
    works,    // answer to `check`
    // Before `swept`: a process that stays, because it may not be killed: pid (0: /proc does not
    // show it), user, name, blocks (then `swept` does not come).
    survivor,
};

// How far a worker came that could not be started. keeper_texts.cc has a sentence for each stage.
enum class Stage : std::uint32_t {
    request,
    fork,
    descriptors,
    directory,
    cpus,
    limits,
    deadline,
    exec,
    adoption
};

// One packet to ddprun. Fields that a kind does not use are zero.
struct Reply {
    ReplyKind kind{};
    std::uint32_t id = 0;
    std::int32_t pid = 0;
    std::int32_t wait_status = 0;
    std::int32_t error = 0;
    Stage stage{};
    std::int64_t time_ns = 0;
    std::uint32_t user = 0;
    std::uint32_t blocks = 0;
    std::uint32_t count = 0;   // of the processes that the workers had left running
    std::uint32_t killed = 0;  // of these
    char name[16] = {};        // of a process, as the kernel has it
};

// The part of a fork request without a fixed size. In the memory file: CPU numbers, then texts with
// a NUL after each: argv, environment, working directory.
struct WorkerPayload {
    std::vector<std::int32_t> cpus;
    // Ready for execve(): a null pointer at the end, texts in `bytes`.
    std::vector<const char*> argv, environment;
    const char* cwd = "";
    std::vector<char> bytes;
};

// Reads what memory_file() wrote (base/system/memory_file.h). Returns false when there are fewer
// bytes.
bool read_payload(int fd, std::size_t bytes, std::vector<char>& out);
// Splits the payload of a fork request. Returns false when it does not match the request.
bool parse_payload(const Request& request, int fd, WorkerPayload& out);

enum class Transfer {
    done,
    would_block,  // wait for the socket
    ended,        // the other side is gone
};
// Neither function waits or raises SIGPIPE.
Transfer send_packet(int socket, const void* bytes, std::size_t size, const std::vector<int>& fds);
// `fds` receives all descriptors, with close-on-exec set. A packet whose size is not `size` counts
// as the end of the connection.
Transfer receive_packet(int socket, void* bytes, std::size_t size, std::vector<UniqueFd>& fds);

}  // namespace ddprun::agent::keeper
