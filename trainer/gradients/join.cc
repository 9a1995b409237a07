// Counts the ranks with samples before each step, and takes the place of those without.
#include "trainer/gradients/join.h"

#include "trainer/group/rank_names.h"

namespace ddprun::trainer {

namespace {
// In messages, and compared by the ranks.
constexpr char kJoin[] = "join";
constexpr double kWord = 0x6A6F696E;
}  // namespace

void Join::add(GradientReducer& reducer, std::vector<NamedBuffer> state, GpuStream stream) {
    models_.push_back({&reducer, std::move(state), stream, reducer.steps() - steps_});
    parts_.push_back({[&reducer, stream] { return reducer.shadow(stream); }});
}

void Join::add(Joinable part) { parts_.push_back(std::move(part)); }

// A step() too few or too many would let this rank wait in another call than the others.
Result<void> Join::verify_use() const {
    if (finished_)
        return usage_error(
            "this rank has called finish() of its Join and so has no samples left; make a new Join "
            "for the next epoch");
    for (const Model& model : models_) {
        const auto reduced = model.reducer->steps() - model.before;
        if (reduced != steps_)
            return usage_error("gradients were averaged " + std::to_string(reduced) + " times in " +
                               std::to_string(steps_) +
                               " step()s of their Join; call step() once before the backward "
                               "passes of each finish()");
    }
    return {};
}

// The number of the step travels with the count, and a word that no other numbers give: so ranks
// that meet in different steps, or in another call of this size, find out.
Result<int> Join::count(bool with_samples) {
    const auto number = static_cast<double>(steps_);
    double values[] = {with_samples ? 1.0 : 0.0, number, kWord};
    if (auto done = group_.all_reduce_values(values, ReduceOp::sum, kJoin); !done)
        return done.error();
    if (values[1] != number * group_.size() || values[2] != kWord * group_.size())
        return Error(ErrorCode::refused,
                     "another rank is in another step of this Join, or in a call that was not "
                     "added to it; this rank is in step " +
                         std::to_string(steps_ + 1) + "; all must step() together");
    const int active = static_cast<int>(values[0]);
    if (active == 0) return 0;
    if (options_.throw_on_early_termination && active < group_.size())
        if (auto end = early_end(with_samples); !end) return end.error();
    ++steps_;
    if (!options_.divide_by_initial_world_size)
        for (const Model& model : models_)
            if (auto done = model.reducer->average_over(active); !done) return done.error();
    return active;
}

// All ranks know the count, so all of them come here, and leave with the same error.
Result<void> Join::early_end(bool with_samples) {
    const auto all = values_of_ranks(group_, with_samples ? 1.0 : 0.0);
    if (!all) return all.error();
    std::vector<int> without;
    for (std::size_t rank = 0; rank < all->size(); ++rank)
        if ((*all)[rank] == 0) without.push_back(static_cast<int>(rank));
    return Error(ErrorCode::refused,
                 name_ranks(without) + (without.size() == 1 ? " has" : " have") +
                     " no samples left after " + std::to_string(steps_) +
                     " steps, while others have; with throw_on_early_termination that ends the "
                     "training on all ranks");
}

Result<int> Join::step() {
    if (auto good = verify_use(); !good) return good.error();
    return count(true);
}

Result<JoinEnd> Join::finish() {
    if (auto good = verify_use(); !good) return good.error();
    finished_ = true;
    // A rank that never has to shadow a step was in the last one.
    bool last = true;
    while (true) {
        const auto active = count(false);
        if (!active) return active.error();
        if (*active == 0) break;
        last = false;
        for (const Joinable& part : parts_)
            if (auto done = part.shadow(); !done) return done.error();
    }
    // The reducer is used without a Join, too.
    for (const Model& model : models_)
        if (auto done = model.reducer->average_over(group_.size()); !done) return done.error();
    return share(last);
}

// Of several ranks in the last step the highest one gives its state. They all have the same.
Result<JoinEnd> Join::share(bool last) {
    double root[] = {last ? static_cast<double>(group_.rank()) : -1.0};
    if (auto done = group_.all_reduce_values(root, ReduceOp::max, kJoin); !done)
        return done.error();
    const JoinEnd end{static_cast<int>(root[0]), steps_};
    // The parameters of a ShardedOptimizer may still be on their way.
    for (const Model& model : models_)
        if (auto done = model.reducer->settle(); !done) return done.error();
    std::vector<Work> works;
    for (const Model& model : models_)
        for (const auto& [name, buffer] : model.state)
            works.push_back(
                group_.begin(Operation::broadcast(buffer, end.last).on(model.stream).of(kJoin)));
    for (const auto& work : works)
        if (auto done = work.wait(); !done) return done.error();
    for (const Joinable& part : parts_)
        if (part.share)
            if (auto done = part.share(end.last); !done) return done.error();
    return end;
}

}  // namespace ddprun::trainer
