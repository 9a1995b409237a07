// Looks into each folder below one (survey.h).
#include "launcher/ctl/survey.h"

#include <algorithm>
#include <filesystem>

#include "rendezvous/ledger/ledger_contents.h"
#include "rendezvous/ledger/ledger_folder.h"

namespace ddprun::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefault = ".ddprun";

// Nothing: it is no ledger, or has just been moved away.
std::optional<FoundJob> look_at(const std::string& path) {
    FoundJob job{fs::path(path).filename().string(), path};
    auto contents = rendezvous::look_into(path);
    if (!contents) {
        if (contents.error().code() == ErrorCode::not_found) return std::nullopt;
        job.fault = contents.error().sentence();
        return job;
    }
    const bool begun = contents->begun > Duration{};
    if (!begun && contents->entries == 0) return std::nullopt;
    if (contents->claim) job.mark = contents->claim->mark;
    if (contents->fault) job.fault = contents->fault->sentence();
    if (!begun) job.fault = "ledger folder " + path + " lacks " + rendezvous::kClaimFile;
    job.newest = std::move(contents->newest);
    job.bytes = contents->bytes;
    job.begun = contents->begun;
    job.written = contents->written;
    return job;
}

// A folder, or a link to one. Links are shown, and never followed.
bool may_be_ledger(const fs::directory_entry& one) {
    std::error_code ignored;
    return one.is_directory(ignored);
}

Error cannot_read(const std::string& folder, const std::error_code& error) {
    return Error(error == std::errc::no_such_file_or_directory ? ErrorCode::not_found
                                                               : ErrorCode::unavailable,
                 folder + ": " + error.message());
}

}  // namespace

Result<Survey> survey_ledgers(const std::string& ledger) {
    if (ledger == "memory" || ledger.starts_with("etcd:") || ledger.starts_with("etcds:"))
        return usage_error("--ledger=" + ledger +
                           ": only ledgers in folders can be shown; give --ledger=PATH");
    constexpr std::string_view kKind = "directory:";
    Survey survey{ledger.starts_with(kKind) ? ledger.substr(kKind.size()) : ledger, {}};
    while (survey.folder.size() > 1 && survey.folder.back() == '/') survey.folder.pop_back();
    if (survey.folder.empty()) survey.folder = kDefault;

    std::error_code error;
    if (fs::exists(fs::symlink_status(survey.folder + "/" + rendezvous::kClaimFile, error))) {
        if (auto job = look_at(survey.folder)) survey.jobs.push_back(std::move(*job));
        return survey;
    }
    for (fs::directory_iterator one(survey.folder, error), end; !error && one != end;
         one.increment(error))
        if (may_be_ledger(*one))
            if (auto job = look_at(one->path().string())) survey.jobs.push_back(std::move(*job));
    const bool none = error == std::errc::no_such_file_or_directory && ledger.empty();
    if (error && !none) return cannot_read(survey.folder, error);
    std::ranges::sort(survey.jobs, {},
                      [](const FoundJob& job) { return std::pair(job.begun, job.name); });
    return survey;
}

}  // namespace ddprun::launcher
