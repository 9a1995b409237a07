// What a program is: version, commit, and how it was built. `--version` prints it. Pure.
#pragma once

#include <string>
#include <string_view>

namespace ddprun {

struct Release {
    std::string_view version;  // 0.1.0: the nodes of a job must have the same one
    std::string_view commit;   // 12 digits; "-changed" behind them: and changes that no commit has;
                               // "unknown": built outside of a repository
    std::string_view build;    // "Release GNU-12.2.0 x86_64"
};

// This program's own. cmake/release.cmake makes the file that has it.
const Release& this_release();

// "ddprun 0.1.0, commit 1d98af2b3c4d, build Release GNU-12.2.0 x86_64", with its line end. The
// first two words stay what they are, for scripts.
std::string release_line(std::string_view program, const Release& release);

}  // namespace ddprun
