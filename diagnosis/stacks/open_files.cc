// Reads /proc/PID/fd.
#include "diagnosis/stacks/open_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/system/small_file.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;

// A process may have a million.
constexpr std::size_t kDescriptors = 4096, kLines = 256;

struct Descriptor {
    int number = 0;
    std::string target;  // "/data/train.bin", "socket:[4711]"
};

std::string folder_of(std::int64_t pid, const char* name) {
    return "/proc/" + std::to_string(pid) + "/" + name;
}

std::vector<Descriptor> descriptors(std::int64_t pid) {
    std::vector<Descriptor> found;
    std::error_code error;
    for (fs::directory_iterator each(folder_of(pid, "fd"), error), end;
         !error && each != end && found.size() < kDescriptors; each.increment(error)) {
        const std::string name = each->path().filename().string();
        std::error_code gone;
        Descriptor descriptor{.target = fs::read_symlink(each->path(), gone).string()};
        std::from_chars(name.data(), name.data() + name.size(), descriptor.number);
        if (!gone) found.push_back(std::move(descriptor));
    }
    std::ranges::sort(found, {}, &Descriptor::number);
    return found;
}

// Null: it is no TCP socket.
const TcpSocket* find_socket(const std::string& target, const TcpSockets& sockets) {
    constexpr std::string_view kSocket = "socket:[";
    if (!target.starts_with(kSocket)) return nullptr;
    std::uint64_t inode = 0;
    std::from_chars(target.data() + kSocket.size(), target.data() + target.size(), inode);
    const auto found = sockets.find(inode);
    return found == sockets.end() ? nullptr : &found->second;
}

// From /proc/PID/fdinfo: "pos:\t81920".
std::string position(std::int64_t pid, int descriptor) {
    const std::string text =
        read_small_file(folder_of(pid, "fdinfo/") + std::to_string(descriptor));
    constexpr std::string_view kName = "pos:\t";
    const auto at = text.find(kName);
    if (at == std::string::npos) return {};
    const auto from = at + kName.size();
    return ", at byte " + text.substr(from, text.find('\n', from) - from);
}

}  // namespace

std::vector<TcpSocket> sockets_of(std::int64_t pid, const TcpSockets& sockets) {
    std::vector<TcpSocket> found;
    if (sockets.empty()) return found;
    for (const Descriptor& each : descriptors(pid))
        if (const TcpSocket* socket = find_socket(each.target, sockets)) found.push_back(*socket);
    return found;
}

std::string socket_text(const TcpSocket& socket) {
    const std::string local = socket.local + ":" + std::to_string(socket.local_port);
    if (socket.listens) return "listens on " + local;
    std::string text = local + " to " + socket.remote + ":" + std::to_string(socket.remote_port);
    if (socket.unread > 0) text += "; " + std::to_string(socket.unread) + " bytes not read";
    if (socket.unacknowledged > 0)
        text += "; " + std::to_string(socket.unacknowledged) + " bytes not acknowledged";
    if (socket.sent_again > 0)
        text += ", sent " + std::to_string(socket.sent_again) + " times again";
    return text;
}

StackLines open_files(std::int64_t pid, const TcpSockets& sockets) {
    StackLines lines;
    const std::vector<Descriptor> all = descriptors(pid);
    for (const Descriptor& each : all) {
        if (lines.size() == kLines) {
            lines.push_back("and " + std::to_string(all.size() - kLines) + " more");
            break;
        }
        const TcpSocket* socket = find_socket(each.target, sockets);
        std::string line = std::to_string(each.number) + ": ";
        line += socket ? "TCP " + socket_text(*socket) : each.target;
        if (each.target.starts_with('/')) line += position(pid, each.number);
        lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace ddprun::agent
