// Reads values. Each sentence says what is wrong and what to give instead.
#include "base/command_line/plain_values.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ddprun::launcher {
namespace {

using std::chrono::milliseconds;

constexpr int kMostPort = 65535;

}  // namespace

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

// from_chars() alone would accept "4x" as 4.
std::optional<int> whole_number(std::string_view text) {
    int value = 0;
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure == std::errc::result_out_of_range) {
        using Limits = std::numeric_limits<int>;
        value = text.starts_with('-') ? Limits::min() : Limits::max();
        failure = std::errc();
    }
    if (text.empty() || failure != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

Result<int> read_int(std::string_view text, int least, int most) {
    auto value = whole_number(text);
    if (!value || *value < least || *value > most)
        return usage_error("not a whole number from " + std::to_string(least) + " to " +
                           std::to_string(most));
    return *value;
}

// Common mistakes in scripts have sentences of their own: two addresses, a URL, IPv6 without
// brackets.
Result<HostPort> read_host_port(std::string_view text) {
    text = trimmed(text);
    if (text.find_first_of(" \t\n,") != std::string_view::npos)
        return usage_error(
            "more than one address (as `hostname --ip-address` may print); give one, or under "
            "Slurm leave the option out");
    if (text.find("://") != std::string_view::npos)
        return usage_error("this is a URL; give HOST:PORT");
    HostPort result;
    std::string_view port;
    bool has_port = false;
    if (text.starts_with('[')) {
        std::size_t close = text.find(']');
        if (close == std::string_view::npos)
            return usage_error("'[' without ']'; give [ADDRESS]:PORT");
        result.host = text.substr(1, close - 1);
        std::string_view rest = text.substr(close + 1);
        has_port = !rest.empty();
        if (has_port && rest[0] != ':') return usage_error("not an endpoint; give [ADDRESS]:PORT");
        if (has_port) port = rest.substr(1);
    } else {
        std::size_t colon = text.find(':');
        if (colon != text.rfind(':'))
            return usage_error("an IPv6 address needs brackets; give [ADDRESS]:PORT");
        result.host = text.substr(0, colon);
        has_port = colon != std::string_view::npos;
        if (has_port) port = text.substr(colon + 1);
    }
    if (result.host.empty()) result.host = "localhost";
    for (char c : result.host)
        if (!std::isalnum(static_cast<unsigned char>(c)) &&
            // A colon only stands within brackets; "%" introduces the zone of a link-local IPv6
            // address.
            std::string_view(".-_:%").find(c) == std::string_view::npos)
            return usage_error(std::string("'") + c +
                               "' is not allowed in a host name; give HOST:PORT");
    if (!has_port) return result;
    result.port = whole_number(port);
    if (!result.port || *result.port < 0 || *result.port > kMostPort)
        return usage_error(
            "the text after the last colon is not a port; give HOST:PORT, with a port up to 65535");
    return result;
}

Result<Duration> read_seconds(std::string_view text) {
    double value = 0;
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool all = failure == std::errc() && end == text.data() + text.size() && !text.empty();
    if (!all || !std::isfinite(value))
        return usage_error("not a number of seconds; give one like 30 or 0.5");
    // A year: long enough for every use, and far from any overflow when times are added.
    constexpr double kMost = 366.0 * 24 * 3600;
    if (value < 0 || value > kMost) return usage_error("not between 0 seconds and a year");
    return milliseconds(static_cast<std::int64_t>(std::llround(value * 1000)));
}

}  // namespace ddprun::launcher
