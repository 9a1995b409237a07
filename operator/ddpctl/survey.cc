// Looks into each folder below one, and into etcd (survey.h).
#include "operator/ddpctl/survey.h"

#include <algorithm>
#include <filesystem>

#include "base/system/careful_open.h"
#include "base/system/small_file.h"
#include "operator/ddpctl/whose_job.h"
#include "rendezvous/ledger/etcd_files.h"
#include "rendezvous/ledger/etcd_survey.h"
#include "rendezvous/ledger/ledger_contents.h"
#include "rendezvous/ledger/ledger_folder.h"
#include "rendezvous/ledger_format/job_pointer.h"
#include "rendezvous/ledger_format/ledger_place.h"
#include "rendezvous/secret/secret.h"

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
        // Also where the file server maps users: then our own folder could be read.
        job.owner = other_owner(path);
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

// What the user has given for etcd.
struct EtcdWish {
    rendezvous::EtcdFiles files;
    std::string secret_file;  // with which values are sealed; empty: they are not
};
rendezvous::EtcdFiles files_of(const CtlCall& call) {
    return {call.value("etcd-user-file"), call.value("etcd-cacert"), call.value("etcd-cert"),
            call.value("etcd-key")};
}

Result<rendezvous::LedgerAccessPointer> access_to(const rendezvous::LedgerPlace& place,
                                                  const EtcdWish& wish) {
    if (const auto good = check_etcd_files(wish.files, place); !good) return good.error();
    SecretText secret;
    if (!wish.secret_file.empty()) {
        auto read = rendezvous::read_secret_file(wish.secret_file);
        if (!read) return read.error();
        secret = std::move(*read);
    }
    return rendezvous::read_ledger_access(wish.files, place, std::string_view(secret));
}

// Nothing: there is none of this name. etcd has no times of its keys, so those in the entries
// count.
std::optional<FoundJob> look_in_etcd(const std::string& etcd,
                                     const rendezvous::LedgerAccessPointer& access,
                                     const std::string& name) {
    FoundJob job{name, etcd + "/" + name};
    job.etcd = etcd;
    job.access = access;
    const auto place = rendezvous::read_ledger_place(etcd);
    auto ledger = place ? rendezvous::read_etcd_ledger(*place, access, name)
                        : Result<rendezvous::EtcdLedger>(place.error());
    if (!ledger && ledger.error().code() == ErrorCode::not_found) return std::nullopt;
    if (!ledger) job.fault = ledger.error().sentence();
    if (!ledger) return job;
    job.mark = ledger->mark;
    if (ledger->fault) job.fault = ledger->fault->sentence();
    if (ledger->entries.empty()) return job;
    job.newest = std::move(ledger->entries.back());
    job.begun = job.newest->time.begun;
    job.written = job.newest->time.at;
    return job;
}

// "etcd:HOST:PORT,…", or one job there: "etcd:HOST:PORT,…/NAME".
Result<Survey> in_etcd(const std::string& ledger, const EtcdWish& wish) {
    const auto slash = ledger.find('/');
    const std::string etcd = ledger.substr(0, slash);
    const auto place = rendezvous::read_ledger_place(etcd);
    if (!place) return usage_error("--ledger=" + ledger + ": " + place.error().sentence());
    const auto access = access_to(*place, wish);
    if (!access) return access.error();
    std::vector<std::string> names{slash == std::string::npos ? "" : ledger.substr(slash + 1)};
    if (slash == std::string::npos) {
        auto all = rendezvous::names_in_etcd(*place, *access);
        if (!all) return all.error();
        names = std::move(*all);
    }
    Survey survey{ledger, {}};
    for (const std::string& name : names)
        if (auto job = look_in_etcd(etcd, *access, name)) survey.jobs.push_back(std::move(*job));
    return survey;
}

// What such a file names (job_pointer.h). Nothing: it is none, or has just been removed.
std::optional<FoundJob> pointed_at(const std::string& path, const EtcdWish& wish) {
    constexpr std::size_t kMost = 8192;
    const auto file = open_to_read(path);
    if (!file && file.error().code() == ErrorCode::not_found) return std::nullopt;
    const std::string name = fs::path(path).stem().string();
    FoundJob job{name, path};
    const auto pointer = file ? rendezvous::pointer_from_json(read_bounded(file->get(), kMost))
                              : Result<rendezvous::JobPointer>(file.error());
    if (!pointer) job.fault = path + " " + pointer.error().sentence();
    if (!pointer) return job;
    if (!pointer->ledger.empty()) {
        const auto place = rendezvous::read_ledger_place(pointer->ledger);
        const auto access = place ? access_to(*place, wish)
                                  : Result<rendezvous::LedgerAccessPointer>(place.error());
        if (!access) job.fault = path + ": " + access.error().sentence();
        return access ? look_in_etcd(pointer->ledger, *access, name) : job;
    }
    job.host = pointer->host;
    job.port = pointer->port;
    job.run_id = pointer->run_id;
    return job;
}

Error cannot_read(const std::string& folder, const std::error_code& error, const CtlCall& call) {
    const std::string owner =
        error == std::errc::permission_denied ? other_owner(folder) : std::string();
    if (!owner.empty()) return Error(ErrorCode::refused, whose_sentence(folder, owner, call));
    return Error(error == std::errc::no_such_file_or_directory ? ErrorCode::not_found
                                                               : ErrorCode::unavailable,
                 folder + ": " + error.message());
}

}  // namespace

Result<Survey> survey_ledgers(const CtlCall& call) {
    const std::string ledger = call.value("ledger");
    if (ledger == "memory")
        return usage_error(
            "--ledger=memory: nobody else can read it; give the place where the "
            "job's nodes meet, --rdzv-endpoint=HOST:PORT");
    const EtcdWish wish{files_of(call), call.value("secret-file")};
    if (ledger.starts_with("etcd:") || ledger.starts_with("etcds:")) return in_etcd(ledger, wish);
    constexpr std::string_view kKind = "directory:";
    return survey_folder(ledger.starts_with(kKind) ? ledger.substr(kKind.size()) : ledger, call);
}

Result<Survey> survey_folder(const std::string& ledger, const CtlCall& call) {
    const EtcdWish wish{files_of(call), call.value("secret-file")};
    Survey survey{ledger, {}};
    while (survey.folder.size() > 1 && survey.folder.back() == '/') survey.folder.pop_back();
    if (survey.folder.empty()) survey.folder = kDefault;

    std::error_code error;
    if (fs::exists(fs::symlink_status(survey.folder + "/" + rendezvous::kClaimFile, error))) {
        if (auto job = look_at(survey.folder)) survey.jobs.push_back(std::move(*job));
        return survey;
    }
    if (survey.folder.ends_with(rendezvous::kPointerSuffix)) {
        if (auto job = pointed_at(survey.folder, wish)) survey.jobs.push_back(std::move(*job));
        return survey;
    }
    for (fs::directory_iterator one(survey.folder, error), end; !error && one != end;
         one.increment(error)) {
        std::optional<FoundJob> job;
        if (may_be_ledger(*one))
            job = look_at(one->path().string());
        else if (one->path().extension() == rendezvous::kPointerSuffix)
            job = pointed_at(one->path().string(), wish);
        if (job) survey.jobs.push_back(std::move(*job));
    }
    const bool none = error == std::errc::no_such_file_or_directory && ledger.empty();
    if (error && !none) return cannot_read(survey.folder, error, call);
    std::ranges::sort(survey.jobs, {},
                      [](const FoundJob& job) { return std::pair(job.begun, job.name); });
    return survey;
}

std::optional<FoundJob> look_again(const FoundJob& job) {
    if (!job.has_ledger()) return job;
    std::optional<FoundJob> found =
        job.etcd.empty() ? look_at(job.path) : look_in_etcd(job.etcd, job.access, job.name);
    if (found) found->socket = job.socket, found->process = job.process;
    if (!found || (job.mark != 0 && found->mark != 0 && found->mark != job.mark))
        return std::nullopt;
    if (found->mark == 0) found->mark = job.mark;
    return found;
}

Result<rendezvous::LedgerHistory> history_of(const FoundJob& job) {
    if (!job.has_ledger())
        return Error(ErrorCode::not_found,
                     job.path + ": the ledger of this job is in memory; only its leader knows it");
    if (job.etcd.empty()) return rendezvous::read_history(job.path, job.mark);
    const auto place = rendezvous::read_ledger_place(job.etcd);
    if (!place) return place.error();
    auto ledger = rendezvous::read_etcd_ledger(*place, job.access, job.name);
    if (!ledger) return ledger.error();
    rendezvous::LedgerHistory history{{}, std::move(ledger->fault)};
    for (rendezvous::LedgerEntry& entry : ledger->entries) {
        const Duration written = entry.time.at;
        history.entries.push_back({std::move(entry), written});
    }
    return history;
}

}  // namespace ddprun::launcher
