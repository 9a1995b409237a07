// The words of a resume in the store: round/candidate, round/answer/RANK and round/verdict.
#include "trainer/snapshot/folder/resume_meeting.h"

#include "trainer/snapshot/folder/error_word.h"

namespace ddprun::trainer {
namespace {

constexpr std::string_view kBase = "base ";
constexpr char kNone[] = "none", kTake[] = "take", kNext[] = "next", kLoaded[] = "ok";

using Load = std::function<Result<void>(const Candidate&)>;
using Chosen = Result<std::optional<Candidate>>;

struct Words {
    const Context& context;
    Store& store;
    std::string kind;
    std::int64_t number;  // of the calls of this kind
    std::chrono::milliseconds timeout;

    // What the time-out of a rank says that waits for `who`, which may not call it at all.
    Error missing(const std::string& who, const Error& why) const {
        if (why.code() != ErrorCode::timed_out) return why;
        return {ErrorCode::timed_out,
                who + " within " + std::to_string(timeout.count()) + " ms in " + kind +
                    "() number " + std::to_string(number) +
                    "; all ranks must call resume() and resume_into() for the same folders in the "
                    "same order, and loading may take longer than that"};
    }
    std::string key(std::size_t round, const char* word) const {
        return kind + "/" + std::to_string(number) + "/" + std::to_string(round) + "/" + word;
    }
    std::string answer_key(std::size_t round, int rank) const {
        return key(round, "answer/") + std::to_string(rank);
    }
};

Result<std::vector<Candidate>> candidates_of(SnapshotFolder& folder) {
    auto own = folder.candidates();
    if (!own) return own.error();
    std::vector<Candidate> all;
    for (const auto& name : *own) all.push_back({name, false});
    if (!all.empty() || folder.base().empty()) return all;
    auto base = folder.base_candidates();
    if (!base) return base.error();
    for (const auto& name : *base) all.push_back({name, true});
    return all;
}

// The first error of all ranks; a wrong program (usage) before a damaged file.
Result<void> hear_all(const Words& words, std::size_t round, const Result<void>& mine) {
    std::optional<Error> worst;
    const auto note = [&](int rank, const Error& error) {
        if (!worst || (error.code() == ErrorCode::usage && worst->code() != ErrorCode::usage))
            worst = Error(error.code(), "rank " + std::to_string(rank) + ": " + error.sentence());
    };
    if (!mine) note(0, mine.error());
    for (int rank = 1; rank < words.context.world_size; ++rank) {
        auto word = words.store.get(words.answer_key(round, rank), words.timeout);
        if (!word)
            return words.missing(
                "rank " + std::to_string(rank) + " did not say whether it could load",
                word.error());
        if (auto why = failure_in(*word)) note(rank, *why);
    }
    return worst ? Result<void>(*worst) : Result<void>();
}

// Rank 0's half.
Chosen choose(const Words& words, SnapshotFolder& folder, const Load& load) {
    auto candidates = candidates_of(folder);
    std::size_t round = 0;
    // The other ranks learn of an error at once, and not by their time-out.
    const auto give_up = [&](const Error& error) -> Chosen {
        (void)words.store.set(words.key(round, "candidate"), word_of(error));
        return error;
    };
    if (!candidates) return give_up(candidates.error());
    for (const auto& candidate : *candidates) {
        const std::string name =
            (candidate.from_base ? std::string(kBase) : "") + candidate.name.manifest();
        if (auto said = words.store.set(words.key(round, "candidate"), name); !said)
            return said.error();
        auto heard = hear_all(words, round, load(candidate));
        // A later loader may have removed it. Then the folder is that loader's.
        if (auto ours = folder.check_turn(); !ours) heard = ours;
        const bool skip = !heard && (heard.error().code() == ErrorCode::malformed ||
                                     heard.error().code() == ErrorCode::not_found ||
                                     heard.error().code() == ErrorCode::unavailable);
        const std::string verdict = heard ? kTake : skip ? kNext : word_of(heard.error());
        if (auto said = words.store.set(words.key(round, "verdict"), verdict); !said)
            return said.error();
        if (heard) {
            if (!candidate.from_base) folder.proved(candidate.name);
            return std::optional(candidate);
        }
        if (!skip) return heard.error();
        folder.skip(candidate.name, candidate.from_base, heard.error());
        ++round;
    }
    if (!candidates->empty()) return give_up(folder.none_readable(candidates->size()));
    if (auto said = words.store.set(words.key(round, "candidate"), kNone); !said)
        return said.error();
    return std::optional<Candidate>();
}

// The other ranks' half.
Chosen follow(const Words& words, const Load& load) {
    for (std::size_t round = 0;; ++round) {
        auto word = words.store.get(words.key(round, "candidate"), words.timeout);
        if (!word) return words.missing("rank 0 named no snapshot", word.error());
        if (auto why = failure_in(*word))
            return Error(why->code(), "rank 0 could not choose a snapshot: " + why->sentence());
        if (*word == kNone) return std::optional<Candidate>();
        const bool from_base = word->starts_with(kBase);
        auto name = parse_manifest_name(word->substr(from_base ? kBase.size() : 0));
        if (!name)
            return Error(ErrorCode::malformed, "rank 0 names the snapshot \"" + *word + "\"");
        // By name and not "the newest": a writer may have completed a newer one by now.
        const Candidate candidate{*name, from_base};
        const auto mine = load(candidate);
        const std::string answer = mine ? kLoaded : word_of(mine.error());
        if (auto said = words.store.set(words.answer_key(round, words.context.rank.value), answer);
            !said)
            return said.error();
        // Rank 0 may still wait for others, each of which has its whole time.
        auto verdict = words.store.get(words.key(round, "verdict"), 2 * words.timeout);
        if (!verdict)
            return words.missing("rank 0 did not say whether all ranks could load",
                                 verdict.error());
        if (auto why = failure_in(*verdict)) return *why;
        if (*verdict == kTake && mine) return std::optional(candidate);
    }
}

}  // namespace

Chosen resume_together(const Context& context, Store& store, SnapshotFolder& folder,
                       const std::string& kind, std::chrono::milliseconds timeout,
                       const Load& load) {
    auto number = next_of_kind(store, kind, context.rank);
    if (!number) return number.error();
    const Words words{context, store, kind, *number, timeout};
    return context.is_first() ? choose(words, folder, load) : follow(words, load);
}

}  // namespace ddprun::trainer
