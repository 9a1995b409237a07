// Shell completion, made from the option table. Pure.
#pragma once

#include <string>
#include <string_view>

namespace ddprun::launcher {

// A completion script for bash, zsh, fish or tcsh. `name` is the command to complete: ddprun, or
// torchrun if it is called so. The caller has checked `shell`.
std::string completion(std::string_view shell, std::string_view name);

}  // namespace ddprun::launcher
