// Writes down all that can be seen of workers that stand still.
#include "agent/standstill/standstill_file.h"

#include <time.h>

#include "agent/stacks/open_files.h"
#include "agent/stacks/process_look.h"
#include "base/system/careful_open.h"

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

std::string text_of(const rendezvous::WorkerOutcome& worker, const TcpSockets& sockets) {
    std::string text =
        "rank " + std::to_string(worker.rank) + ", process " + std::to_string(worker.pid) + "\n";
    add(text, "call", worker.stack);
    add(text, "stacks", look_at_process(worker.pid).lines);
    add(text, "open", open_files(worker.pid, sockets));
    add(text, "last lines", worker.tail);
    return text;
}

}  // namespace

// Each worker is written when it has been looked at: the next one may let nobody look.
void keep_standstill(const std::string& path,
                     const std::vector<rendezvous::WorkerOutcome>& workers) {
    const Result<UniqueFd> file = open_to_append(path);
    if (!file) return;
    const TcpSockets sockets = tcp_sockets();
    std::string text = "---- " + now_text() + "\n";
    for (const rendezvous::WorkerOutcome& worker : workers) {
        text += text_of(worker, sockets) + "\n";
        for (std::size_t written = 0; written < text.size();) {
            const ssize_t more = ::write(file->get(), text.data() + written, text.size() - written);
            if (more <= 0) return;
            written += static_cast<std::size_t>(more);
        }
        text.clear();
    }
}

}  // namespace ddprun::agent
