// Tells the two forms apart.
#include "diagnosis/nccl/ras_reader.h"

#include "diagnosis/nccl/ras_json.h"
#include "diagnosis/nccl/ras_text.h"

namespace ddprun::agent {

std::optional<RasAnswer> read_ras_answer(std::string_view text) {
    if (text.size() > kLongestRasAnswer) return std::nullopt;
    const std::size_t begin = text.find_first_not_of(" \r\n\t");
    if (begin == std::string_view::npos) return std::nullopt;
    return text[begin] == '{' ? read_ras_json(text) : read_ras_text(text);
}

}  // namespace ddprun::agent
