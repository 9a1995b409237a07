// The names of nodes. A node has the name of its host, "n1". With --task-per-worker several tasks
// of a host are nodes, and a task adds its number on the host: "n1/2". A host name never contains a
// slash. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddprun::rendezvous {

inline std::string task_node(const std::string& host, int local_id) {
    return host + "/" + std::to_string(local_id);
}

inline bool is_task_node(std::string_view name) { return name.find('/') != std::string_view::npos; }

inline std::string host_of(std::string_view name) {
    return std::string(name.substr(0, name.find('/')));
}

// The word for such nodes in the log: "nodes", or "tasks".
inline std::string plural_of(const std::vector<std::string>& names) {
    return !names.empty() && is_task_node(names.front()) ? "tasks" : "nodes";
}

}  // namespace ddprun::rendezvous
