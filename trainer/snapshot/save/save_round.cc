// The steps of a round, in their order.
#include "trainer/snapshot/save/save_round.h"

#include <algorithm>
#include <span>
#include <utility>

namespace ddprun::trainer {
namespace {

// Empty if no rank has any.
std::vector<Metadata> metadata_of(const std::vector<SaveAnswer>& answers) {
    std::vector<Metadata> all;
    bool empty = true;
    for (const auto& answer : answers) {
        all.push_back(answer.metadata);
        empty = empty && answer.metadata.empty();
    }
    if (empty) all.clear();
    return all;
}

// Where other ranks have some of this rank's slices, too, only those remain that it writes.
Result<void> keep_written(PageBuffer& file, const SaveJob& job) {
    if (job.written == job.slices) return {};
    auto slices = parse_slices(job.written);
    return slices ? keep_slices(file, *slices) : slices.error();
}

}  // namespace

SaveRound::SaveRound(const Context& context, SnapshotFolder& folder, Kept& kept,
                     SaveMeeting meeting, SaveJob& job, SaveCopier::Memory& memory)
    : context_(context),
      folder_(folder),
      kept_(kept),
      meeting_(std::move(meeting)),
      job_(job),
      memory_(memory) {
    if (context_.is_first()) meeting_.remove_later(kept_.words);
}

Result<void> SaveRound::write(const Result<void>& copied) {
    auto how = open(copied);
    if (!how) return how.error();
    job_.how = *how;
    Result<void> result = context_.is_first() ? lead(copied) : follow();
    if (!result)
        for (const auto& name : files_) folder_.discard(job_.name, name);
    return result;
}

// Rank 0 checks that the folder is still ours and finds free file names. The other ranks write
// nothing before they have its answer.
Result<WritePlan> SaveRound::open(const Result<void>& copied) {
    const SaveOpinion mine{job_.name, context_.world_size, job_.planned(),
                           checksum_of(std::as_bytes(std::span(job_.tensors))),
                           job_.contents.empty()
                               ? kNotCompared
                               : checksum_of(std::as_bytes(std::span(job_.contents)))};
    if (!context_.is_first()) {
        auto slices = slices_word();
        if (!slices) return slices.error();
        return meeting_.join(mine, job_.tensors, {job_.own_metadata, *slices, job_.contents},
                             copied);
    }
    auto how = folder_.begin(job_.name);
    auto said = how ? meeting_.begin(mine, job_.tensors, *how, kept_.lists)
                    : meeting_.call_off(how.error());
    return said || !how ? how : Result<WritePlan>(said.error());
}

// Rank 0's half.
Result<void> SaveRound::lead(const Result<void>& copied) {
    auto metadata = hear_all(copied);
    Result<void> result = metadata ? write_own() : metadata.error();
    if (result) result = complete(std::move(*metadata));
    // If it was written. It stays if the snapshot is complete after all.
    files_.push_back(job_.name.index(job_.how.edition));
    meeting_.end(result);
    return result;
}

// The other ranks' half. Without rank 0's word the snapshot may be complete: the files stay, and
// the next loader decides.
Result<void> SaveRound::follow() {
    if (!job_.slices.empty()) {
        auto list = meeting_.assigned(job_.slices);
        if (!list) return list.error();
        job_.written = std::move(*list);
    }
    Result<void> result = write_own();
    bool unknown = false;
    auto outcome = meeting_.outcome(unknown);
    if (unknown) files_.clear();
    return outcome ? result : outcome;
}

// Rank 0 only: hears all ranks, and tells them which slices they write. Also a failure: they wait
// for it. Returns the ranks' own metadata.
Result<std::vector<Metadata>> SaveRound::hear_all(const Result<void>& copied) {
    auto metadata = agree(copied);
    const auto& written = kept_.slices.written();
    if (metadata) job_.written = write_slices(written[0]);
    for (int rank = 1; rank < context_.world_size; ++rank) {
        const auto index = static_cast<std::size_t>(rank);
        if (metadata && !kept_.slices.brings(index)) continue;
        const auto list =
            metadata ? write_slices(written[index]) : Result<std::string>(metadata.error());
        if (auto said = meeting_.assign(rank, list, kept_.lists); !said) return said.error();
    }
    return metadata;
}

// Rank 0 only: compares the slices of all ranks, and chooses who writes what.
Result<std::vector<Metadata>> SaveRound::agree(const Result<void>& copied) {
    if (!copied) return copied.error();
    auto mine = slices_word();
    if (!mine) return mine.error();
    auto answers = meeting_.answers({job_.own_metadata, *mine, job_.contents}, job_.shared_names());
    if (!answers) return answers.error();
    std::vector<std::string> lists;
    for (const auto& answer : *answers) lists.push_back(answer.slices);
    auto good = kept_.slices.agree(lists, job_.shared_names(), [&](const std::string& list) {
        return meeting_.published(list);
    });
    if (!good) return good.error();
    return metadata_of(*answers);
}

// The checksum of this rank's list of slices, which lies in the store. Empty: it brings none.
Result<std::string> SaveRound::slices_word() {
    return job_.slices.empty() ? Result<std::string>(std::string())
                               : meeting_.publish(job_.slices, kept_.lists);
}

// Writes this rank's files and reports each of them, also a failed one, so that rank 0 does not
// wait for it.
Result<void> SaveRound::write_own() {
    const auto own = job_.own_files();
    Result<void> result;
    for (std::size_t i = 0; i < own.size(); ++i) {
        const auto file = write_file(own[i], memory_.files[i].pages);
        if (auto said = meeting_.report(own[i].key, file); !said) return said;
        if (!file) result = file.error();
    }
    return result;
}

Result<SnapshotFile> SaveRound::write_file(const SaveJob::File& wanted, PageBuffer& pages) {
    if (wanted.slices)
        if (auto ready = keep_written(pages, job_); !ready) return ready.error();
    auto file = folder_.write_file(wanted.name, pages);
    if (!file) return file;
    files_.push_back(wanted.name);
    if (job_.how.read_back)
        if (auto same = folder_.read_back(*file); !same) return same.error();
    // A reader of slices wants to check no more than it needs.
    if (wanted.slices) file->blocks = checksums_of_blocks(pages.bytes());
    return file;
}

// Rank 0 only: collects the reports of all files, and commits.
Result<void> SaveRound::complete(std::vector<Metadata> metadata) {
    const auto& written = kept_.slices.written();
    std::vector<SnapshotFile> files;
    for (const auto& expected : job_.all_files(written)) {
        auto file = hear_of(expected);
        if (!file) return file.error();
        files.push_back(std::move(*file));
    }
    if (std::any_of(written.begin(), written.end(),
                    [](const auto& list) { return !list.empty(); })) {
        const auto text = job_.index_of(written).text();
        if (auto done = folder_.write_index(job_.name.index(job_.how.edition), text); !done)
            return done;
    }
    return folder_.commit(job_.name, std::move(files), job_.metadata, std::move(metadata));
}

// Rank 0 only: waits until a file is written, and looks at it.
Result<SnapshotFile> SaveRound::hear_of(const SaveJob::File& expected) {
    auto file = meeting_.file(expected.key, expected.name, expected.rank);
    if (!file) return file;
    if (auto seen = folder_.look_at(*file); !seen)
        return Error(seen.error().code(),
                     "of rank " + std::to_string(expected.rank) + ": " + seen.error().sentence());
    return file;
}

}  // namespace ddprun::trainer
