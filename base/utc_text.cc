// Calendar arithmetic of the C++ library; no time zone is read (utc_text.h).
#include "base/utc_text.h"

#include <cstdio>

namespace ddprun {

std::string utc_text(Duration since_1970) {
    using namespace std::chrono;
    const auto ms = floor<milliseconds>(since_1970);
    const auto day = floor<days>(ms);
    const year_month_day date{sys_days{day}};
    const hh_mm_ss time{ms - day};
    char text[40];
    std::snprintf(
        text, sizeof text, "%04d-%02u-%02uT%02ld:%02ld:%02ld.%03ldZ", static_cast<int>(date.year()),
        static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
        static_cast<long>(time.hours().count()), static_cast<long>(time.minutes().count()),
        static_cast<long>(time.seconds().count()), static_cast<long>(time.subseconds().count()));
    return text;
}

}  // namespace ddprun
