// 1F1B, the order in which a stage of a pipeline computes its micro-batches, and what travels
// between two turns. Pure.
//
// Each stage first does as many forward passes as there are stages behind it, then one forward and
// one backward in turn, then the backward passes that are left. So it keeps the activations of at
// most so many micro-batches as there are stages, however many there are in all.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace example {

struct Turn {
    bool forward = true;
    int micro_batch = 0;
    bool operator==(const Turn&) const = default;
};

// The turns of a stage, in their order: a forward and a backward of each micro-batch.
std::vector<Turn> one_forward_one_backward(int stage, int stages, int micro_batches);

// What a stage sends and receives between two turns, at the same time: the stages, or -1 for none.
// A forward pass gives activations to the next stage and needs those of the one before; a backward
// pass the other way round. If a stage sent first and then received, two neighbours could both send
// and wait for each other.
struct Move {
    int to = -1, from = -1;
    bool operator==(const Move&) const = default;
};
// `before`: the turn that is done, none at the start; `after`: the next one, none at the end.
Move move_between(const std::optional<Turn>& before, const std::optional<Turn>& after, int stage,
                  int stages);

// The share of a step in which a stage waits, if all turns take equally long and messages no time:
// (p - 1) / (m + p - 1) for p stages and m micro-batches.
double ideal_bubble(int stages, int micro_batches);

// When a turn was, in seconds since the step began.
struct TimedTurn {
    Turn turn;
    double begin = 0, end = 0;
};

// The measured share: of the time until the last stage is done, over all stages.
double measured_bubble(const std::vector<double>& busy, double whole);

// A step as text, one line of `columns` characters a stage: a digit is the forward pass of the
// micro-batch whose number ends so, a letter its backward pass (a: 0), a dot is waiting.
std::string draw(const std::vector<std::vector<TimedTurn>>& stages, int columns);

}  // namespace example
