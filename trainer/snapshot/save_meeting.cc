// The keys and words of a snapshot in the store.
#include "trainer/snapshot/save_meeting.h"

#include <algorithm>
#include <cstdlib>

namespace ddprun::trainer {
namespace {

constexpr char kBegin[] = "begin", kAnswer[] = "answer/", kDone[] = "done", kAgreed[] = "ok ";
// Lists of tensors, below the writer's own part of the store: they serve all its snapshots.
constexpr char kTensors[] = "tensors/";

// A failure as a word: "!", a letter for the error's code, and the sentence.
std::string word_of(const Error& error) {
    return std::string("!") + static_cast<char>('a' + static_cast<int>(error.code())) +
           error.sentence();
}

std::optional<Error> failure_in(const std::string& word) {
    if (word.size() < 2 || word[0] != '!') return std::nullopt;
    return Error(static_cast<ErrorCode>(word[1] - 'a'), word.substr(2));
}

}  // namespace

SaveMeeting::SaveMeeting(const Context& context, Store& store, std::string prefix,
                         std::chrono::milliseconds timeout)
    : context_(context),
      store_(store),
      prefix_(std::move(prefix)),
      timeout_(timeout),
      deadline_(Clock::now() + timeout) {}

// At least 1 ms: a word that is there already can still be read after the deadline.
std::chrono::milliseconds SaveMeeting::left() const {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
    return std::max(left, std::chrono::milliseconds(1));
}

// "EDITION READ_BACK OPINION".
Result<void> SaveMeeting::begin(const SaveOpinion& mine, const std::string& tensors,
                                const WritePlan& plan, std::set<std::string>& lists) {
    // Before the word that makes other ranks look for it.
    if (lists.insert(mine.tensors).second)
        if (auto said = store_.set(kTensors + mine.tensors, tensors); !said) return said;
    return store_.set(prefix_ + kBegin, std::to_string(plan.edition) +
                                            (plan.read_back ? " 1 " : " 0 ") + write_opinion(mine));
}

Result<void> SaveMeeting::call_off(const Error& reason) {
    return store_.set(prefix_ + kBegin, word_of(reason));
}

Result<WritePlan> SaveMeeting::join(const SaveOpinion& mine, const std::string& tensors,
                                    const Metadata& own) {
    auto word = store_.get(prefix_ + kBegin, timeout_);
    if (!word) return word.error();
    if (auto why = failure_in(*word)) return *why;
    char* at = nullptr;
    WritePlan plan;
    plan.edition = static_cast<int>(std::strtol(word->c_str(), &at, 10));
    plan.read_back = std::strtol(at, &at, 10) != 0;
    auto first = parse_opinion(at);
    auto agreed = first ? compare(*first, mine, tensors) : Result<void>(first.error());
    auto said = store_.set(prefix_ + kAnswer + std::to_string(context_.rank.value),
                           agreed ? kAgreed + write_metadata(own) : word_of(agreed.error()));
    if (!agreed) return agreed.error();
    if (!said) return said.error();
    return plan;
}

Result<void> SaveMeeting::compare(const SaveOpinion& first, const SaveOpinion& mine,
                                  const std::string& tensors) {
    const int rank = context_.rank.value;
    if (auto what = disagreement(first, rank, mine)) return Error(ErrorCode::refused, *what);
    if (first.tensors == mine.tensors) return {};
    auto list = store_.get(kTensors + first.tensors, timeout_);
    if (!list) return list.error();
    return Error(ErrorCode::refused, tensor_disagreement(*list, rank, tensors));
}

Result<std::vector<Metadata>> SaveMeeting::answers(const Metadata& own) {
    std::vector<Metadata> all{own};
    for (int rank = 1; rank < context_.world_size; ++rank) {
        auto word = store_.get(prefix_ + kAnswer + std::to_string(rank), left());
        if (!word)
            return Error(word.error().code(), "rank " + std::to_string(rank) +
                                                  " did not take part: " + word.error().sentence());
        if (auto why = failure_in(*word)) return *why;
        auto metadata = parse_metadata(word->substr(std::min(sizeof kAgreed - 1, word->size())));
        if (!metadata) return metadata.error();
        all.push_back(std::move(*metadata));
    }
    return all;
}

// "4096 0123456789abcdef": bytes and checksum.
Result<void> SaveMeeting::report(std::size_t index, const Result<SnapshotFile>& file) {
    return store_.set(
        prefix_ + std::to_string(index),
        file ? std::to_string(file->bytes) + " " + file->checksum : word_of(file.error()));
}

Result<SnapshotFile> SaveMeeting::file(std::size_t index, const std::string& name, int rank) {
    auto word = store_.get(prefix_ + std::to_string(index), left());
    const std::string who = "rank " + std::to_string(rank);
    if (!word)
        return Error(word.error().code(),
                     who + " did not write its part: " + word.error().sentence());
    const auto space = word->find(' ');
    if (auto why = failure_in(*word))
        return Error(why->code(), who + " could not write its part: " + why->sentence());
    if (space == std::string::npos)
        return Error(ErrorCode::malformed, who + " reports its part as \"" + *word + "\"");
    return SnapshotFile{name, std::strtoull(word->c_str(), nullptr, 10), word->substr(space + 1)};
}

void SaveMeeting::end(const Result<void>& result) {
    (void)store_.set(prefix_ + kDone, result ? kAgreed : word_of(result.error()));
}

// Rank 0 may use its whole timeout, so this rank waits a little longer.
Result<void> SaveMeeting::outcome(bool& unknown) {
    auto word = store_.get(prefix_ + kDone, timeout_ + std::chrono::seconds(5));
    unknown = !word;
    if (!word) return word.error();
    if (auto why = failure_in(*word)) return *why;
    return {};
}

}  // namespace ddprun::trainer
