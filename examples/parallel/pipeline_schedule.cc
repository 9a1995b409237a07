// The order of turns, the moves between them, and the picture of a step.
#include "examples/parallel/pipeline_schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace example {

std::vector<Turn> one_forward_one_backward(int stage, int stages, int micro_batches) {
    const int ahead = std::min(stages - stage - 1, micro_batches);
    std::vector<Turn> turns;
    for (int i = 0; i < ahead; ++i) turns.push_back({true, i});
    for (int i = ahead; i < micro_batches; ++i) {
        turns.push_back({true, i});
        turns.push_back({false, i - ahead});
    }
    for (int i = micro_batches - ahead; i < micro_batches; ++i) turns.push_back({false, i});
    return turns;
}

Move move_between(const std::optional<Turn>& before, const std::optional<Turn>& after, int stage,
                  int stages) {
    auto inside = [&](int other) { return other < stages ? other : -1; };  // -1 is none already
    Move move;
    if (before) move.to = inside(before->forward ? stage + 1 : stage - 1);
    if (after) move.from = inside(after->forward ? stage - 1 : stage + 1);
    return move;
}

double ideal_bubble(int stages, int micro_batches) {
    return static_cast<double>(stages - 1) / (micro_batches + stages - 1);
}

double measured_bubble(const std::vector<double>& busy, double whole) {
    const double sum = std::accumulate(busy.begin(), busy.end(), 0.0);
    return 1 - sum / (whole * static_cast<double>(busy.size()));
}

std::string draw(const std::vector<std::vector<TimedTurn>>& stages, int columns) {
    double whole = 0;
    for (const auto& turns : stages)
        for (const auto& timed : turns) whole = std::max(whole, timed.end);
    std::string picture;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
        std::string line(static_cast<std::size_t>(columns), '.');
        for (const auto& [turn, begin, end] : stages[stage]) {
            const char sign = turn.forward ? static_cast<char>('0' + turn.micro_batch % 10)
                                           : static_cast<char>('a' + turn.micro_batch % 26);
            // At least one character, so that no turn is missing.
            const auto from = std::min(static_cast<int>(begin / whole * columns), columns - 1);
            const auto to =
                std::max(static_cast<int>(std::lround(end / whole * columns)), from + 1);
            for (int i = from; i < std::min(to, columns); ++i)
                line[static_cast<std::size_t>(i)] = sign;
        }
        picture += "stage " + std::to_string(stage) + " |" + line + "|\n";
    }
    return picture;
}

}  // namespace example
