// Formats durations for log sentences.
#include "base/time.h"

#include <cstdio>

namespace ddprun {

std::string to_text(Duration duration) {
    char text[48];
    const double s = std::chrono::duration<double>(duration).count();
    if (s < 0.0995) {
        std::snprintf(text, sizeof text, "%.3g ms", s * 1e3);
    } else if (s < 120) {
        std::snprintf(text, sizeof text, "%.1f s", s);
    } else if (s < 7200) {
        std::snprintf(text, sizeof text, "%d m %02d s", static_cast<int>(s) / 60,
                      static_cast<int>(s) % 60);
    } else {
        std::snprintf(text, sizeof text, "%d h %02d m", static_cast<int>(s) / 3600,
                      static_cast<int>(s) / 60 % 60);
    }
    return text;
}

}  // namespace ddprun
