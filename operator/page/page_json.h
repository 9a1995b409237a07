// What the page shows, as JSON for its script (page.js): how the job stands, and its past. Each is
// one line and at most kEventLimit bytes, so that a reader who stops reading costs no more; what
// does not fit is counted. All texts are printable; the script shows them as text. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "operator/page/page_view.h"

namespace ddprun::launcher {

inline constexpr std::size_t kEventLimit = std::size_t{512} << 10;
inline constexpr std::size_t kEntriesShown = 200;  // of the past: the newest

// Points in time are milliseconds since 1970, unknown values null. A node is a list: name, state,
// why, first rank, workers, last word, step. If not all fit, those that run are left out first.
// A job that tells nothing shows the members of its newest generation, as "recorded".
std::string page_status_json(const PageView& view, Duration now);
std::string page_history_json(const PageView& view);

}  // namespace ddprun::launcher
