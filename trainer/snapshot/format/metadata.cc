// Texts and bytes of metadata, and the errors about them.
#include "trainer/snapshot/format/metadata.h"

#include "base/hexadecimal.h"
#include "base/printable.h"

namespace ddprun::trainer {

std::string text_of(std::span<const std::byte> bytes) {
    return hexadecimal_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<std::string> text_at(const Metadata& metadata, const std::string& key) {
    const auto found = metadata.find(key);
    if (found != metadata.end()) return found->second;
    return Error(ErrorCode::not_found, "the metadata have no \"" + key + "\"");
}

Result<std::vector<std::byte>> bytes_at(const Metadata& metadata, const std::string& key) {
    auto text = text_at(metadata, key);
    if (!text) return text.error();
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < text->size(); i += 2) {
        unsigned value = 0;
        const char* pair = text->data() + i;
        if (std::from_chars(pair, pair + 2, value, 16).ptr != pair + 2) break;
        bytes.push_back(static_cast<std::byte>(value));
    }
    // A wrong digit or half a byte.
    if (bytes.size() * 2 != text->size())
        return wrong_value(key, *text, "bytes in hexadecimal digits");
    return bytes;
}

Error wrong_value(const std::string& key, std::string_view text, const char* wanted) {
    return {ErrorCode::malformed, "the metadata's \"" + key + "\" is \"" +
                                      printable(std::string(text.substr(0, 40))) + "\", not " +
                                      wanted};
}

}  // namespace ddprun::trainer
