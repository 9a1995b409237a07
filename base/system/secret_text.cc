// The pages of secrets.
#include "base/system/secret_text.h"

#include <string.h>
#include <sys/mman.h>

#include <new>

namespace ddprun {

SecretText::Page::Page(std::string_view text) : size(text.size()) {
    void* const page =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw std::bad_alloc();
    // Before the secret is in it. Where the kernel cannot do this (before Linux 4.14), the secret
    // lies as open as any other memory.
    ::madvise(page, size, MADV_DONTDUMP);
    ::madvise(page, size, MADV_WIPEONFORK);
    bytes = static_cast<char*>(page);
    text.copy(bytes, size);
}

SecretText::Page::~Page() {
    ::explicit_bzero(bytes, size);
    ::munmap(bytes, size);
}

SecretText::SecretText(std::string_view text)
    : page_(text.empty() ? nullptr : std::make_shared<const Page>(text)) {}

SecretText SecretText::out_of(std::string&& text) {
    SecretText secret{std::string_view(text)};
    ::explicit_bzero(text.data(), text.size());
    text.clear();
    return secret;
}

}  // namespace ddprun
