// Fills in the local rank in a worker's arguments.
#include "agent/workers/worker_arguments.h"

#include "base/template_text.h"

namespace ddprun::agent {

std::string with_local_rank(std::string_view text, int local_rank, bool collapse) {
    return fill_template(text, {{"local_rank", std::to_string(local_rank)}}, collapse);
}

std::vector<std::string> worker_arguments(std::vector<std::string> argv, std::size_t first,
                                          int local_rank, bool collapse) {
    for (std::size_t i = first; i < argv.size(); ++i)
        // Most arguments have no dollar sign and need no copy.
        if (argv[i].find('$') != std::string::npos)
            argv[i] = with_local_rank(argv[i], local_rank, collapse);
    return argv;
}

}  // namespace ddprun::agent
