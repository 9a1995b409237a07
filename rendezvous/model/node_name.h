// What nodes are called: by their host, "n1"; where several tasks of a host are a node each
// (--task-per-worker), with the number of the task on its host behind it, "n1/2". No host's name
// has a slash. Pure.
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

// What nodes of these names are for the log.
inline std::string plural_of(const std::vector<std::string>& names) {
    return !names.empty() && is_task_node(names.front()) ? "tasks" : "nodes";
}

}  // namespace ddprun::rendezvous
