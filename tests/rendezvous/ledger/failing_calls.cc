// The system calls of the ledger, as a failing file system answers them (failing_calls.h).
#include "tests/rendezvous/ledger/failing_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdarg>
#include <utility>

namespace ddprun::rendezvous {
namespace {

Mount* current = nullptr;  // null: the real file system

}  // namespace

void Mount::use(const std::function<void()>& run, std::function<void()> others) {
    Mount* const before = std::exchange(current, this);
    std::swap(others_, others);
    try {
        run();
    } catch (const Died&) {
        current = nullptr;  // its descriptors were closed meanwhile
    }
    std::swap(others_, others);
    current = before;
}

bool Mount::chance(double share) {
    return static_cast<double>(random_() >> 11) * 0x1.0p-53 < share;
}

int Mount::error() {
    constexpr int kErrors[] = {EIO, ESTALE, ENOSPC, EDQUOT, ETIMEDOUT};
    return kErrors[random_() % std::size(kErrors)];
}

void Mount::between_calls() {
    if (others_) others_();
}

}  // namespace ddprun::rendezvous

using ddprun::rendezvous::current;
using ddprun::rendezvous::Mount;

namespace {

int failed(int code) {
    errno = code;
    return -1;
}

// Other hosts come first. Then the process may die; never while it closes a file or removes one,
// since these calls promise to throw nothing.
Mount* mount(bool may_die) {
    if (!current) return nullptr;
    Mount* const here = current;
    here->between_calls();
    if (may_die && here->fails() && here->chance(0.2)) throw Mount::Died{};
    return here;
}

}  // namespace

extern "C" {

int __real_openat(int folder, const char* name, int flags, ...);
ssize_t __real_read(int file, void* bytes, size_t size);
ssize_t __real_write(int file, const void* bytes, size_t size);
ssize_t __real_pwrite(int file, const void* bytes, size_t size, off_t at);
int __real_fsync(int file);
int __real_close(int file);
int __real_linkat(int from, const char* name, int to, const char* second, int flags);
int __real_unlinkat(int folder, const char* name, int flags);
DIR* __real_fdopendir(int folder);
struct dirent* __real_readdir(DIR* list);

int __wrap_openat(int folder, const char* name, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    Mount* const here = mount(true);
    if (!here) return __real_openat(folder, name, flags, mode);
    if (here->fails()) return failed(here->error());
    const bool makes = (flags & O_CREAT) != 0;
    if (!makes && here->absent.contains(name) && here->chance(0.5)) return failed(ENOENT);
    const int file = __real_openat(folder, name, flags, mode);
    if (file < 0 && errno == ENOENT)
        here->absent.insert(name);
    else
        here->absent.erase(name);
    return file;
}

ssize_t __wrap_read(int file, void* bytes, size_t size) {
    Mount* const here = mount(true);
    return here && here->fails() ? failed(here->error()) : __real_read(file, bytes, size);
}

// A full disk takes a part of what is written and then nothing.
ssize_t __wrap_write(int file, const void* bytes, size_t size) {
    Mount* const here = mount(true);
    if (here && here->fails()) {
        if (size < 2 || here->chance(0.5)) return failed(here->error());
        size /= 2;
    }
    return __real_write(file, bytes, size);
}

ssize_t __wrap_pwrite(int file, const void* bytes, size_t size, off_t at) {
    Mount* const here = mount(true);
    if (here && here->fails()) {
        if (size < 2 || here->chance(0.5)) return failed(here->error());
        size /= 2;
    }
    return __real_pwrite(file, bytes, size, at);
}

int __wrap_fsync(int file) {
    Mount* const here = mount(true);
    if (!here) return __real_fsync(file);
    return here->fails() ? failed(here->error()) : 0;  // the disk is not what is tried here
}

int __wrap_close(int file) {
    Mount* const here = mount(false);
    const int done = __real_close(file);
    return here && here->fails() ? failed(here->error()) : done;
}

// The answer may be lost after the link was made. A client that asks again by itself then finds its
// own link.
int __wrap_linkat(int from, const char* name, int to, const char* second, int flags) {
    Mount* const here = mount(false);
    if (!here) return __real_linkat(from, name, to, second, flags);
    if (here->fails()) return failed(here->error());
    const int done = __real_linkat(from, name, to, second, flags);
    const int code = errno;
    here->absent.erase(second);
    if (here->fails()) return failed(here->chance(0.5) ? EEXIST : here->error());
    errno = code;
    return done;
}

int __wrap_unlinkat(int folder, const char* name, int flags) {
    Mount* const here = mount(false);
    if (here && here->fails()) return failed(here->error());
    return __real_unlinkat(folder, name, flags);
}

DIR* __wrap_fdopendir(int folder) {
    Mount* const here = mount(true);
    if (here) here->lists_old = here->fails();
    if (here && !here->lists_old) {
        // The server answers, and what it says of the folder ends the cache of names.
        here->absent.clear();
        here->listed.clear();
    }
    return __real_fdopendir(folder);
}

struct dirent* __wrap_readdir(DIR* list) {
    Mount* const here = current;  // one look: nobody comes in between
    if (!here) return __real_readdir(list);
    while (struct dirent* const one = __real_readdir(list)) {
        if (!here->lists_old) here->listed.insert(one->d_name);
        if (here->listed.contains(one->d_name)) return one;
    }
    return nullptr;
}

}  // extern "C"
