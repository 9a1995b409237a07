// Early stopping, and the figures of an epoch as text and as JSON.
#include "trainer/training/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace ddprun::trainer {

bool EarlyStop::update(double figure) {
    // The test for finite values is needed for the first figure: a NaN would become the best one,
    // and no later figure is less than a NaN.
    if (std::isfinite(figure) && (!best_ || figure < *best_ - least_)) {
        best_ = figure;
        waited_ = 0;
        return false;
    }
    return ++waited_ > patience_;
}

std::optional<std::size_t> first_not_finite(std::span<const float> values) {
    auto at = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
    if (at == values.end()) return std::nullopt;
    return static_cast<std::size_t>(at - values.begin());
}

namespace {

// 0 if nothing was measured yet, instead of a division by zero.
double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

// The share of the communication that ran behind computation. Never negative, whatever a program
// fills in.
double hidden(const EpochFigures& figures) {
    return share(std::max(figures.communication - figures.waited, 0.0), figures.communication);
}

// printf's formats give a fixed number of digits, which std::to_string does not.
std::string text(const char* format, double value) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, format, value);
    return buffer;
}

}  // namespace

std::string line_of(const EpochFigures& f) {
    const double rate = share(f.samples, f.seconds);
    std::string line = "epoch=" + std::to_string(f.epoch) + " step=" + std::to_string(f.step) +
                       " loss=" + text("%.6f", f.loss);
    if (f.since) line += " (since step " + std::to_string(*f.since) + ")";
    if (f.validation) line += " validation=" + text("%.6f", *f.validation);
    line += " samples/s=" + text("%.0f", rate) + " (" + text("%.0f", rate / f.world) +
            " per worker) communication=" + text("%.0f", 100 * share(f.communication, f.seconds)) +
            " % of the time, " + text("%.0f", 100 * hidden(f)) + " % of it hidden";
    return line;
}

std::string json_of(const EpochFigures& f) {
    const double rate = share(f.samples, f.seconds);
    // ordered_json keeps this order, which is the order for a human reader.
    nlohmann::ordered_json json{{"epoch", f.epoch},
                                {"step", f.step},
                                {"world", f.world},
                                {"loss", f.loss},
                                {"samples_per_second", rate},
                                {"samples_per_second_per_worker", rate / f.world},
                                {"seconds", f.seconds},
                                {"computation_seconds", f.seconds - f.waited},
                                {"communication_seconds", f.communication},
                                {"communication_share", share(f.communication, f.seconds)},
                                {"hidden_share", hidden(f)}};
    if (f.validation) json["validation"] = *f.validation;
    if (f.since) json["since_step"] = *f.since;
    return json.dump();
}

}  // namespace ddprun::trainer
