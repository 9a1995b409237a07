// The files of the page: page.html, page.css and page.js of this folder, which CMake makes part of
// the binary. Constant.
#pragma once

#include <string_view>

namespace ddprun::launcher {

extern const std::string_view kPageHtml, kPageStyle, kPageScript;

}  // namespace ddprun::launcher
