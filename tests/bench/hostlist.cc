// Slurm's host lists of 10,000 nodes.
//
// Without an argument: how long they take to read, in the forms that Slurm writes, and how long all
// variables of a step take. Each task pays this at its start; the goal is 2 ms. With "expand":
// reads an expression a line and prints its names, for tests/slurm/cross_check.sh.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "slurm/allocation.h"
#include "slurm/hostlist.h"

namespace {

using namespace ddprun::slurm;

constexpr int kNodes = 10'000, kRepeats = 101;

// Aborts if the list does not have all nodes: a wrong answer would be fast.
double median_ms(const std::function<std::size_t()>& read) {
    std::vector<double> times;
    for (int i = 0; i < kRepeats; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        if (read() != kNodes) std::abort();
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - begin;
        times.push_back(took.count());
    }
    std::ranges::nth_element(times, times.begin() + kRepeats / 2);
    return times[kRepeats / 2];
}

// Every second number, so that no two of them can share a range: the longest text that Slurm writes
// for one bracket.
std::string odd_numbers() {
    std::string list = "gpu[1";
    for (int i = 1; i < kNodes; ++i) list += "," + std::to_string(2 * i + 1);
    return list + "]";
}

// Names of a cloud, with two numbers each. Slurm cannot fold them into brackets.
std::string names_alone() {
    std::string list;
    for (int i = 0; i < kNodes; ++i)
        list += (i ? ",ip-10-" : "ip-10-") + std::to_string(i % 251) + "-" + std::to_string(i);
    return list;
}

int expand() {
    std::string line;
    while (std::getline(std::cin, line)) {
        const auto names = expand_hostlist(line);
        // Errors look as in the golden file of the host list test: "!" and the sentence.
        std::string text = names ? "" : "!" + names.error().sentence();
        if (names)
            for (const std::string& name : *names) text += (text.empty() ? "" : " ") + name;
        std::puts(text.c_str());
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::string(argv[1]) == "expand") return expand();
    const std::pair<const char*, std::string> lists[] = {
        {"one range, n[00001-10000]", "n[00001-10000]"},
        {"two dimensions, rack[1-100]n[01-100]", "rack[1-100]n[01-100]"},
        {"a bracket of 10,000 single numbers", odd_numbers()},
        {"10,000 names without a bracket", names_alone()}};
    std::puts("| 10,000 nodes | ms |\n|---|---:|");
    for (const auto& [what, list] : lists)
        std::printf("| %s | %.2f |\n", what,
                    median_ms([&list = list] { return expand_hostlist(list)->size(); }));
    const Environment step{{"SLURM_JOB_ID", "1"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_STEP_NODELIST", "n[00001-10000]"},
                           {"SLURM_JOB_NODELIST", "n[00001-10000]"},
                           {"SLURM_STEP_NUM_NODES", "10000"},
                           {"SLURM_STEP_TASKS_PER_NODE", "1(x10000)"},
                           {"SLURM_NODEID", "9999"},
                           {"SLURM_PROCID", "9999"}};
    std::printf("| all variables of a step, two lists among them | %.2f |\n",
                median_ms([&] { return (*read_allocation(step))->nodes.size(); }));
}
