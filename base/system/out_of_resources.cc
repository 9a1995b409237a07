// The handler that the C++ runtime calls when nobody catches an exception.
#include "base/system/out_of_resources.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

namespace ddprun {
namespace {

// Set before there are threads. The handler must not allocate.
const char* program_name = "";
int code = 1;

[[noreturn]] void leave(const char* sentence) {
    char line[256];
    std::snprintf(line, sizeof line, "%s: %s\n", program_name, sentence);
    // A failed write leaves nothing else to try.
    if (::write(STDERR_FILENO, line, std::strlen(line)) < 0) ::_exit(code);
    ::_exit(code);
}

[[noreturn]] void on_terminate() {
    try {
        if (const std::exception_ptr thrown = std::current_exception())
            std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
        leave("no memory left (ulimit -v, the memory limit of the cgroup)");
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::resource_unavailable_try_again)
            leave("no thread to be had (ulimit -u, ulimit -v, the pids limit of the cgroup)");
        std::fprintf(stderr, "%s: unexpected: %s\n", program_name, error.what());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: unexpected: %s\n", program_name, error.what());
    } catch (...) {
    }
    std::abort();
}

}  // namespace

void end_without_resources(const char* program, int exit_code) {
    program_name = program;
    code = exit_code;
    std::set_terminate(on_terminate);
}

}  // namespace ddprun
