// The order of a pipeline's turns: complete, with few activations, without a deadlock.
#include "examples/parallel/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace example {
namespace {

std::string text_of(const std::vector<Turn>& turns) {
    std::string text;
    for (const auto& turn : turns)
        text += (turn.forward ? " F" : " B") + std::to_string(turn.micro_batch);
    return text;
}

// The first stage of two is one forward pass ahead. The last stage never is.
TEST(PipelineSchedule, AlternatesBehindTheFirstForwards) {
    EXPECT_EQ(text_of(one_forward_one_backward(0, 2, 3)), " F0 F1 B0 F2 B1 B2");
    EXPECT_EQ(text_of(one_forward_one_backward(1, 2, 3)), " F0 B0 F1 B1 F2 B2");
    EXPECT_EQ(text_of(one_forward_one_backward(0, 4, 2)), " F0 F1 B0 B1");
    EXPECT_EQ(text_of(one_forward_one_backward(0, 1, 2)), " F0 B0 F1 B1");
}

// For many sizes: each micro-batch goes forward, then backward, once; a stage holds the activations
// of at most as many micro-batches as there are stages from it on.
TEST(PipelineSchedule, HoldsFewActivations) {
    for (int stages = 1; stages <= 6; ++stages) {
        for (int micro_batches = 1; micro_batches <= 9; ++micro_batches) {
            for (int stage = 0; stage < stages; ++stage) {
                const auto turns = one_forward_one_backward(stage, stages, micro_batches);
                ASSERT_EQ(turns.size(), 2u * static_cast<std::size_t>(micro_batches));
                int forward = 0, backward = 0;
                for (const auto& turn : turns) {
                    EXPECT_EQ(turn.micro_batch, turn.forward ? forward++ : backward++);
                    EXPECT_LE(backward, forward);
                    EXPECT_LE(forward - backward, stages - stage);
                }
                EXPECT_EQ(backward, micro_batches);
            }
        }
    }
}

// A stage in a play of all stages: its turns, and which of its moves it is in. Move i comes before
// turn i; the last one is at the end.
struct Player {
    std::vector<Turn> turns;
    std::size_t at = 0;
    bool sent = false, received = false;
    std::optional<Turn> turn(std::size_t i) const {
        return i < turns.size() ? std::optional(turns[i]) : std::nullopt;
    }
    std::optional<Turn> before() const { return at ? turn(at - 1) : std::nullopt; }
    bool done() const { return at > turns.size(); }
};

// Lets all stages go on until none can. A message goes only when its receiver is in a move that
// takes it, as in a group's exchange(). Returns whether all came to their end. Each message must be
// the one that its receiver needs: the same micro-batch in the same direction.
bool plays(int stages, int micro_batches) {
    std::vector<Player> players(static_cast<std::size_t>(stages));
    for (int s = 0; s < stages; ++s)
        players[static_cast<std::size_t>(s)].turns =
            one_forward_one_backward(s, stages, micro_batches);
    auto move_of = [&](int s) {
        const auto& p = players[static_cast<std::size_t>(s)];
        return p.done() ? Move{} : move_between(p.before(), p.turn(p.at), s, stages);
    };
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < stages; ++s) {
            auto& me = players[static_cast<std::size_t>(s)];
            const Move mine = move_of(s);
            if (mine.to >= 0 && !me.sent && move_of(mine.to).from == s) {
                auto& other = players[static_cast<std::size_t>(mine.to)];
                if (!other.received) {
                    EXPECT_EQ(me.before(), other.turn(other.at));
                    me.sent = other.received = moved = true;
                }
            }
            if (!me.done() && (mine.to < 0 || me.sent) && (mine.from < 0 || me.received)) {
                ++me.at;
                me.sent = me.received = false;
                moved = true;
            }
        }
    }
    return std::all_of(players.begin(), players.end(), [](const auto& p) { return p.done(); });
}

TEST(PipelineSchedule, ComesToItsEndOnAllStages) {
    for (int stages = 1; stages <= 6; ++stages)
        for (int micro_batches = 1; micro_batches <= 9; ++micro_batches)
            EXPECT_TRUE(plays(stages, micro_batches)) << stages << " " << micro_batches;
}

// The formula is what the schedule gives when all turns take equally long: 2 stages, 3
// micro-batches, 6 turns each in 8 units of time.
TEST(PipelineSchedule, MeasuresTheBubble) {
    EXPECT_DOUBLE_EQ(ideal_bubble(2, 3), 0.25);
    EXPECT_DOUBLE_EQ(ideal_bubble(1, 8), 0);
    EXPECT_DOUBLE_EQ(measured_bubble({6, 6}, 8), ideal_bubble(2, 3));
}

TEST(PipelineSchedule, DrawsAStep) {
    const std::vector<std::vector<TimedTurn>> stages{
        {{{true, 0}, 0, 1}, {{true, 1}, 1, 2}, {{false, 0}, 3, 4}, {{false, 1}, 5, 6}},
        {{{true, 0}, 1, 2}, {{false, 0}, 2, 3}, {{true, 1}, 3, 4}, {{false, 1}, 4, 5}}};
    EXPECT_EQ(draw(stages, 12), "stage 0 |0011..aa..bb|\nstage 1 |..00aa11bb..|\n");
    // A turn too short for a character still has one.
    EXPECT_EQ(draw({{{{true, 12}, 0, 0.001}, {{false, 12}, 0.5, 1}}}, 4), "stage 0 |2.mm|\n");
}

}  // namespace
}  // namespace example
