// Reads the configuration files that count for this start: the site's and the user's.
//
// The site's file has defaults for all users of a cluster. A file that others than root can have
// written is ignored with a warning, and does not end the start: in a container without a real
// root even the host's file belongs to nobody. What it says can be overridden anyway.
#pragma once

#include <string>
#include <vector>

#include "launcher/options/options.h"

namespace ddprun::launcher {

inline constexpr const char* kSiteConfig = "/etc/ddprun/ddprun.toml";

// `with_site` is false for a start that must be as torchrun's. DDPRUN_SITE_CONFIG=none passes by
// the site's file. Possible errors: usage: the user's file cannot be read.
Result<ConfigFiles> read_config_files(const std::vector<std::string>& words,
                                      const Environment& environment, bool with_site);

}  // namespace ddprun::launcher
