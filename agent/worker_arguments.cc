#include "agent/worker_arguments.h"

namespace ddprun::agent {
namespace {

constexpr std::string_view kName = "local_rank", kBraced = "{local_rank}";

bool continues_name(std::string_view rest) {
    if (rest.empty()) return false;
    const char c = rest.front();
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

std::string with_local_rank(std::string_view text, int local_rank, bool collapse) {
    std::string result;
    while (!text.empty()) {
        const std::size_t dollar = std::min(text.find('$'), text.size());
        result += text.substr(0, dollar);
        text.remove_prefix(dollar);
        if (text.empty()) break;
        text.remove_prefix(1);
        if (text.starts_with('$')) {
            result += collapse ? "$" : "$$";
            text.remove_prefix(1);
        } else if (text.starts_with(kBraced)) {
            result += std::to_string(local_rank);
            text.remove_prefix(kBraced.size());
        } else if (text.starts_with(kName) && !continues_name(text.substr(kName.size()))) {
            result += std::to_string(local_rank);
            text.remove_prefix(kName.size());
        } else {
            result += '$';
        }
    }
    return result;
}

std::vector<std::string> worker_arguments(std::vector<std::string> argv, std::size_t first,
                                          int local_rank, bool collapse) {
    for (std::size_t i = first; i < argv.size(); ++i)
        if (argv[i].find('$') != std::string::npos)
            argv[i] = with_local_rank(argv[i], local_rank, collapse);
    return argv;
}

}  // namespace ddprun::agent
