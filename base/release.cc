// The words of `--version`.
#include "base/release.h"

namespace ddprun {

std::string release_line(std::string_view program, const Release& release) {
    std::string line(program);
    line.append(" ").append(release.version);
    line.append(", commit ").append(release.commit);
    return line.append(", build ").append(release.build).append("\n");
}

}  // namespace ddprun
