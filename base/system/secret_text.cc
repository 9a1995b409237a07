// The pages of secrets.
#include "base/system/secret_text.h"

#include <string.h>
#include <sys/mman.h>

#include <new>

namespace ddprun {

SecretText::SecretText(std::string_view text) {
    if (text.empty()) return;
    void* const page =
        ::mmap(nullptr, text.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw std::bad_alloc();
    // Before the secret is in it. Where the kernel cannot do this (before Linux 4.14), the secret
    // lies as open as any other memory.
    ::madvise(page, text.size(), MADV_DONTDUMP);
    ::madvise(page, text.size(), MADV_WIPEONFORK);
    bytes_ = static_cast<char*>(page);
    size_ = text.size();
    text.copy(bytes_, size_);
}

SecretText::~SecretText() {
    if (!bytes_) return;
    ::explicit_bzero(bytes_, size_);
    ::munmap(bytes_, size_);
}

SecretText SecretText::out_of(std::string&& text) {
    SecretText secret{std::string_view(text)};
    ::explicit_bzero(text.data(), text.size());
    text.clear();
    return secret;
}

}  // namespace ddprun
