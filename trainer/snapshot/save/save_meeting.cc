// The keys and words of a snapshot in the store.
#include "trainer/snapshot/save/save_meeting.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "trainer/snapshot/folder/error_word.h"
#include "trainer/snapshot/save/save_contents.h"

namespace ddprun::trainer {
namespace {

constexpr char kBegin[] = "begin", kAnswer[] = "answer/", kWrites[] = "writes/", kDone[] = "done",
               kAgreed[] = "ok ", kDiffers[] = "differs ";
// Rank 0 may use its whole timeout, so the others wait a little longer for it.
constexpr std::chrono::seconds kLonger(5);
// Within this time the ranks of a training come to the same save().
constexpr std::chrono::seconds kComeSoon(5);
constexpr std::chrono::milliseconds kAskAgain(100);
// Lists of tensors and of slices, below the writer's own part of the store: they serve all its
// snapshots.
constexpr char kLists[] = "lists/";

}  // namespace

SaveMeeting::SaveMeeting(const Context& context, Store& store, std::string prefix,
                         std::chrono::milliseconds timeout, Absence absence)
    : context_(context),
      store_(store),
      prefix_(std::move(prefix)),
      timeout_(timeout),
      deadline_(begun_ + timeout),
      absence_(std::move(absence)) {}

// At least 1 ms: a word that is there already can still be read after the deadline.
std::chrono::milliseconds SaveMeeting::left() const {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
    return std::max(left, std::chrono::milliseconds(1));
}

Result<std::string> SaveMeeting::publish(const std::string& list, std::set<std::string>& lists) {
    const std::string checksum = checksum_of(std::as_bytes(std::span(list)));
    if (lists.insert(checksum).second)
        if (auto said = store_.set(kLists + checksum, list); !said) return said.error();
    return checksum;
}

Result<std::string> SaveMeeting::published(const std::string& checksum) {
    return store_.get(kLists + checksum, left());
}

// The word by which another rank shows that it has called save().
Result<std::string> SaveMeeting::first_word(const std::string& key, int rank) {
    auto word = store_.get(key, std::min<std::chrono::milliseconds>(kComeSoon, left()));
    const std::string absent = "rank " + std::to_string(rank) + " has not called save() for it";
    if (!word && word.error().code() == ErrorCode::timed_out && Clock::now() < deadline_ &&
        absence_.warn)
        absence_.warn(absent +
                      ", 5 s after this rank; all ranks must call save() for the same "
                      "steps, not rank 0 alone");
    while (!word && word.error().code() == ErrorCode::timed_out && Clock::now() < deadline_) {
        if (absence_.certain && absence_.certain())
            return Error(ErrorCode::refused,
                         absent +
                             ", and this rank is in its second save() after it; all ranks "
                             "must call save() for the same steps, not rank 0 alone");
        word = store_.get(key, std::min(kAskAgain, left()));
    }
    return word;
}

Result<void> SaveMeeting::say(const std::string& key, const std::string& word) {
    said_.push_back(prefix_ + key);
    return store_.set(said_.back(), word);
}

// A store that does not answer keeps the keys.
void SaveMeeting::remove_own() {
    for (const auto& key : std::exchange(said_, {}))
        if (!store_.remove(key)) return;
}

// The others find it where they look for this rank's first word.
void SaveMeeting::leave(std::int64_t saves) {
    const std::string rank = std::to_string(context_.rank.value);
    const Error gone(ErrorCode::refused,
                     "rank " + rank + " has destroyed its SnapshotWriter (calls of save(): " +
                         std::to_string(saves) +
                         "); all ranks must call save() for the same steps");
    (void)store_.set(prefix_ + (context_.is_first() ? kBegin : kAnswer + rank), word_of(gone));
}

// "EDITION READ_BACK OPINION".
Result<void> SaveMeeting::begin(const SaveOpinion& mine, const std::string& tensors,
                                const WritePlan& plan, std::set<std::string>& lists) {
    // Before the word that makes other ranks look for it.
    if (auto said = publish(tensors, lists); !said) return said.error();
    return store_.set(prefix_ + kBegin, std::to_string(plan.edition) +
                                            (plan.read_back ? " 1 " : " 0 ") + write_opinion(mine));
}

Result<void> SaveMeeting::call_off(const Error& reason) {
    if (later_) later_->push_back(prefix_ + kBegin);
    return store_.set(prefix_ + kBegin, word_of(reason));
}

Result<WritePlan> SaveMeeting::join(const SaveOpinion& mine, const std::string& tensors,
                                    const SaveAnswer& own, const Result<void>& copied) {
    auto word = first_word(prefix_ + kBegin, 0);
    if (!word) return word.error();
    if (auto why = failure_in(*word)) return *why;
    char* at = nullptr;
    WritePlan plan;
    plan.edition = static_cast<int>(std::strtol(word->c_str(), &at, 10));
    plan.read_back = std::strtol(at, &at, 10) != 0;
    auto first = parse_opinion(at);
    auto agreed = first ? compare(*first, mine, tensors) : Result<void>(first.error());
    const std::string rank = std::to_string(context_.rank.value);
    if (agreed && !copied)
        agreed = Error(copied.error().code(),
                       "rank " + rank + " could not write its part: " + copied.error().sentence());
    if (agreed && mine.contents != kNotCompared && first->contents != kNotCompared &&
        mine.contents != first->contents)
        return send_contents(own.contents);
    auto said =
        say(kAnswer + rank, agreed ? kAgreed + own.slices + " " + write_metadata(own.metadata)
                                   : word_of(agreed.error()));
    if (!agreed) return agreed.error();
    if (!said) return said.error();
    return plan;
}

// Rank 0 finds out what differs, and on which ranks, and says it to all.
Error SaveMeeting::send_contents(const std::string& contents) {
    const std::string key = kAnswer + std::to_string(context_.rank.value);
    if (auto said = say(key, kDiffers + contents); !said) return said.error();
    bool unknown = false;
    const auto end = outcome(unknown);
    return end ? Error(ErrorCode::refused, "tensors of this rank are not those of rank 0")
               : end.error();
}

Result<void> SaveMeeting::compare(const SaveOpinion& first, const SaveOpinion& mine,
                                  const std::string& tensors) {
    const int rank = context_.rank.value;
    if (auto what = disagreement(first, rank, mine)) return Error(ErrorCode::refused, *what);
    if (first.tensors == mine.tensors) return {};
    auto list = store_.get(kLists + first.tensors, timeout_);
    if (!list) return list.error();
    return Error(ErrorCode::refused, tensor_disagreement(*list, rank, tensors));
}

// "ok SLICES METADATA".
Result<std::vector<SaveAnswer>> SaveMeeting::answers(const SaveAnswer& own,
                                                     const std::set<std::string>& names) {
    std::vector<SaveAnswer> all{own};
    std::vector<std::string> contents(static_cast<std::size_t>(context_.world_size), own.contents);
    for (int rank = 1; rank < context_.world_size; ++rank) {
        auto word = first_word(prefix_ + kAnswer + std::to_string(rank), rank);
        if (!word)
            return Error(word.error().code(), "rank " + std::to_string(rank) +
                                                  " did not take part: " + word.error().sentence());
        if (auto why = failure_in(*word)) return *why;
        if (word->starts_with(kDiffers)) {
            contents[static_cast<std::size_t>(rank)] = word->substr(sizeof kDiffers - 1);
            continue;
        }
        const std::string said = word->substr(std::min(sizeof kAgreed - 1, word->size()));
        const auto space = std::min(said.find(' '), said.size());
        auto metadata = parse_metadata(said.substr(space));
        if (!metadata) return metadata.error();
        all.push_back({std::move(*metadata), said.substr(0, space), {}});
    }
    if (later_)
        for (const auto& key : std::exchange(*later_, {})) (void)store_.remove(key);
    if (auto same = compare_contents(names, contents); !same) return same.error();
    return all;
}

Result<void> SaveMeeting::assign(int rank, const Result<std::string>& list,
                                 std::set<std::string>& lists) {
    auto checksum = list && !list->empty() ? publish(*list, lists) : list;
    return store_.set(prefix_ + kWrites + std::to_string(rank),
                      checksum ? kAgreed + *checksum : word_of(checksum.error()));
}

Result<std::string> SaveMeeting::assigned(const std::string& own) {
    const std::string key = prefix_ + kWrites + std::to_string(context_.rank.value);
    auto word = store_.get(key, timeout_ + kLonger);
    if (!word) return word;
    said_.push_back(key);  // for this rank alone
    if (auto why = failure_in(*word)) return *why;
    const std::string checksum = word->substr(std::min(sizeof kAgreed - 1, word->size()));
    if (checksum.empty()) return checksum;
    return checksum == checksum_of(std::as_bytes(std::span(own))) ? own : published(checksum);
}

// "4096 0123456789abcdef": bytes and checksum; then those of the blocks.
Result<void> SaveMeeting::report(const std::string& key, const Result<SnapshotFile>& file) {
    if (!file) return say(key, word_of(file.error()));
    std::string word = std::to_string(file->bytes) + " " + file->checksum;
    for (const auto& block : file->blocks) word += " " + block;
    return say(key, word);
}

Result<SnapshotFile> SaveMeeting::file(const std::string& key, const std::string& name, int rank) {
    auto word = store_.get(prefix_ + key, left());
    const std::string who = "rank " + std::to_string(rank);
    if (!word)
        return Error(word.error().code(),
                     who + " did not write its part: " + word.error().sentence());
    if (auto why = failure_in(*word))
        return Error(why->code(), who + " could not write its part: " + why->sentence());
    SnapshotFile file{name, 0, {}};
    std::istringstream words(*word);
    if (!(words >> file.bytes >> file.checksum))
        return Error(ErrorCode::malformed,
                     who + " reports its part as \"" + word->substr(0, 80) + "\"");
    for (std::string block; words >> block;) file.blocks.push_back(std::move(block));
    return file;
}

void SaveMeeting::end(const Result<void>& result) {
    (void)store_.set(prefix_ + kDone, result ? kAgreed : word_of(result.error()));
    remove_own();
    if (later_) later_->insert(later_->end(), {prefix_ + kBegin, prefix_ + kDone});
}

Result<void> SaveMeeting::outcome(bool& unknown) {
    auto word = store_.get(prefix_ + kDone, timeout_ + kLonger);
    unknown = !word;
    if (!word) return word.error();
    remove_own();
    if (auto why = failure_in(*word)) return *why;
    return {};
}

}  // namespace ddprun::trainer
