// Writes down all that can be seen of workers that stand still.
#include "diagnosis/standstill/standstill_file.h"

#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/system/careful_open.h"
#include "base/system/write_all.h"
#include "diagnosis/stacks/open_files.h"
#include "diagnosis/stacks/process_look.h"

namespace ddprun::agent {
namespace {

std::string now_text() {
    const std::time_t now = ::time(nullptr);
    std::tm parts{};
    char text[32] = "";
    if (::gmtime_r(&now, &parts)) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
    return text;
}

void add(std::string& text, const char* title, const StackLines& lines) {
    if (lines.empty()) return;
    text += std::string("  ") + title + ":\n";
    for (const std::string& line : lines) text += "    " + line + "\n";
}

std::string file_text(const rendezvous::WorkerOutcome& worker, const TcpSockets& sockets) {
    std::string text =
        "rank " + std::to_string(worker.rank) + ", process " + std::to_string(worker.pid) + "\n";
    add(text, "call", worker.stack);
    add(text, "stacks", look_at_process(worker.pid).lines);
    add(text, "open", open_files(worker.pid, sockets));
    add(text, "last lines", worker.tail);
    return text;
}

Result<> write_text(int file, const std::string& text) {
    if (const int problem = write_all(file, text))
        return Error(ErrorCode::unavailable,
                     "cannot be written: " + std::system_category().message(problem));
    return {};
}

}  // namespace

// Each worker is written when it has been looked at: the next one may let nobody look.
Result<> keep_standstill(const std::string& path,
                         const std::vector<rendezvous::WorkerOutcome>& workers) {
    const Result<UniqueFd> file = open_to_append(path);
    if (!file) return file.error();
    const TcpSockets sockets = tcp_sockets();
    std::string before = "---- " + now_text() + "\n";
    for (const rendezvous::WorkerOutcome& worker : workers)
        if (auto done = write_text(file->get(),
                                   std::exchange(before, {}) + file_text(worker, sockets) + "\n");
            !done)
            return done;
    return {};
}

Result<> keep_lines(const std::string& path, const std::vector<std::string>& lines) {
    const Result<UniqueFd> file = open_to_append(path);
    if (!file) return file.error();
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return write_text(file->get(), text + "\n");
}

}  // namespace ddprun::agent
