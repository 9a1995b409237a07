// Translates between the agent's structs and the keeper's packets.
#include "keeper/between/keeper_texts.h"

#include <cerrno>
#include <cstring>

namespace ddprun::agent::keeper {

Request of(RequestKind kind, Time time, Duration lease) {
    Request request;
    request.kind = kind;
    request.time_ns = time.time_since_epoch().count();
    request.lease_ns = lease.count();
    return request;
}

ForkRequest make_fork_request(const WorkerStart& start) {
    DDPRUN_CHECK(start.extra.size() <= kMaxExtra, "a worker has at most 8 extra descriptors");
    ForkRequest fork;
    Request& request = fork.request;
    request.kind = RequestKind::fork;
    request.nofile_soft = start.nofile_soft.value_or(0);
    request.foreground = start.foreground ? 1 : 0;
    request.spared = start.spared ? 1 : 0;
    request.argc = static_cast<std::uint32_t>(start.argv.size());
    request.envc = static_cast<std::uint32_t>(start.environment.size());
    request.cpus = static_cast<std::uint32_t>(start.cpus.size());
    // The order in the payload is fixed by WorkerPayload: CPUs, argv, environment, directory. Each
    // text includes its final NUL byte.
    for (const std::int32_t cpu : start.cpus)
        fork.payload.append(reinterpret_cast<const char*>(&cpu), sizeof cpu);
    for (const std::string& text : start.argv) fork.payload.append(text.c_str(), text.size() + 1);
    for (const std::string& text : start.environment)
        fork.payload.append(text.c_str(), text.size() + 1);
    fork.payload.append(start.cwd.c_str(), start.cwd.size() + 1);

    std::uint32_t bit = 0;
    // A bit for each possible descriptor, in a fixed order. Only those that exist travel, because
    // -1 cannot be sent.
    const auto add = [&](int fd) {
        if (fd >= 0) {
            fork.fds.push_back(fd);
            request.present |= 1U << bit;
        }
        ++bit;
    };
    for (const int fd : {start.stdin_fd, start.stdout_fd, start.stderr_fd}) add(fd);
    for (const ExtraFd& extra : start.extra) {
        request.extra_numbers[request.extras++] = extra.number;
        add(extra.fd);
    }
    return fork;
}

// The error codes decide the exit code of a worker that did not start: a shell says 127 for a
// missing program and 126 for one that cannot be executed.
Error start_error(Stage stage, int error, const std::string& program) {
    const std::string reason = std::strerror(error);
    switch (stage) {
        case Stage::exec:
            return {error == ENOENT || error == ENOTDIR ? ErrorCode::not_found : ErrorCode::refused,
                    "cannot execute " + program + ": " + reason};
        case Stage::directory:
            return {ErrorCode::refused,
                    "cannot enter the working directory to run " + program + ": " + reason};
        case Stage::cpus:
            return {ErrorCode::refused, "cannot bind " + program + " to its CPUs: " + reason};
        case Stage::limits:
            return {ErrorCode::refused,
                    "cannot set the limit of open files for " + program + ": " + reason};
        case Stage::deadline:
            return {ErrorCode::timed_out,
                    "the lease's deadline passed before " + program + " could be started"};
        case Stage::fork:
            return {ErrorCode::unavailable, "cannot fork for " + program + ": " + reason +
                                                "; see ulimit -u and the pids limit of the cgroup"};
        case Stage::descriptors:
            return {ErrorCode::unavailable,
                    "no descriptors for " + program + ": " + reason + "; see ulimit -n"};
        case Stage::adoption:
            return {ErrorCode::unavailable, program + " has died at its start: " + reason};
        case Stage::request:
            break;
    }
    // Stage::request: EBUSY comes from a keeper that is killing. Otherwise the request came without
    // its payload, because there was no memory file for it.
    if (error == EBUSY)
        return {ErrorCode::unavailable,
                "cannot start " + program + ": the keeper is still killing the previous workers"};
    return {ErrorCode::internal, "no memory file for the request to start " + program +
                                     " (see ulimit -f and the free memory)"};
}

Error errno_error(const char* what, int error) {
    return {ErrorCode::internal, std::string(what) + ": " + std::strerror(error)};
}

}  // namespace ddprun::agent::keeper
