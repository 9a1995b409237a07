#include "agent/attempt_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;

std::string file_name(std::string run_id) {
    for (char& c : run_id)
        if (c == '/' || c == '\0') c = '_';
    return run_id;
}

// torchrun writes {"message": {"message": TEXT, …}}; older ones {"message": TEXT}.
std::string message_of(const nlohmann::json& report) {
    const auto it = report.is_object() ? report.find("message") : report.end();
    if (!report.is_object() || it == report.end()) return {};
    return it->is_string() ? it->get<std::string>() : message_of(*it);
}

std::string last_line(const std::string& text) {
    const auto end = text.find_last_not_of("\r\n ");
    if (end == std::string::npos) return {};
    const auto begin = text.find_last_of('\n', end);
    return text.substr(begin == std::string::npos ? 0 : begin + 1,
                       end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace

AttemptFolder::AttemptFolder(std::string log_dir, std::string run_id)
    : log_dir_(std::move(log_dir)), run_id_(std::move(run_id)) {}

AttemptFolder::~AttemptFolder() {
    std::error_code ignored;  // a temporary folder that cannot be removed harms nobody
    if (log_dir_.empty() && !base_.empty()) fs::remove_all(base_, ignored);
}

Result<> AttemptFolder::make_base() {
    std::error_code error;
    const char* tmp = std::getenv("TMPDIR");
    const std::string parent = !log_dir_.empty() ? log_dir_ : tmp && *tmp ? tmp : "/tmp";
    if (!log_dir_.empty()) fs::create_directories(parent, error);
    std::string name =
        parent + "/" + (log_dir_.empty() ? "ddprun" : file_name(run_id_)) + "_XXXXXX";
    if (!::mkdtemp(name.data()))
        return Error(ErrorCode::unavailable, "folder " + parent + ": " + std::strerror(errno) +
                                                 (log_dir_.empty() ? " (TMPDIR)" : " (--log-dir)"));
    base_ = fs::absolute(name, error).string();
    return {};
}

Result<std::string> AttemptFolder::of(Generation generation, int local_rank) {
    if (base_.empty())
        if (auto made = make_base(); !made) return made.error();
    const std::string path =
        base_ + "/attempt_" + std::to_string(generation.value) + "/" + std::to_string(local_rank);
    std::error_code error;
    fs::create_directories(path, error);
    if (error) return Error(ErrorCode::unavailable, "folder " + path + ": " + error.message());
    return path;
}

std::string read_error_file(const std::string& path) {
    std::ifstream file(path);
    if (!file) return {};
    const auto report = nlohmann::json::parse(file, nullptr, false);
    return report.is_discarded() ? "error file " + path + " is not JSON"
                                 : last_line(message_of(report));
}

}  // namespace ddprun::agent
