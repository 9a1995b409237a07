// Puts the groups of the option table together, with names that other launchers use.
#include "launcher/options/option_table.h"

#include "launcher/options/option_rows.h"

namespace ddprun::launcher {
namespace {

// Names that people bring along from elsewhere.
constexpr OtherName kOtherNames[] = {
    // An option of torch.distributed.launch before torch 1.9.
    {"logdir", "log-dir", true},
    // Options of accelerate, mpirun, srun and DeepSpeed.
    {"num-processes", "nproc-per-node", false},
    {"num-gpus", "nproc-per-node", false},
    {"gpus-per-node", "nproc-per-node", false},
    {"ntasks-per-node", "nproc-per-node", false},
    {"np", "nproc-per-node", false},
    {"n", "nproc-per-node", false},
    {"ppn", "nproc-per-node", false},
    {"nprocs", "nproc-per-node", false},
    {"num-machines", "nnodes", false},
    {"num-nodes", "nnodes", false},
    {"nodes", "nnodes", false},
    {"machine-rank", "node-rank", false},
    {"main-process-ip", "master-addr", false},
    {"main-process-port", "master-port", false},
    {"hostfile", "rdzv-endpoint", false},
};

}  // namespace

std::span<const OptionGroup> option_groups() {
    static const OptionGroup groups[] = {
        {kNodesTitle, node_rows()},
        {kMeetingTitle, meeting_rows()},
        {kFailureTitle, failure_rows()},
        {kOutputTitle, output_rows()},
        {kWorkerTitle, worker_rows()},
        {"Slurm", slurm_rows()},
        {"The workers' store (passing a limit closes the connection; K, M, G: powers of 1024)",
         store_rows()},
        {"Other", other_rows()},
    };
    return groups;
}

std::span<const OtherName> other_names() { return kOtherNames; }

// A frequent mistake is an option of the program in front of the program's name.
const Grammar& job_grammar() {
    static const Grammar grammar = [] {
        Grammar made;
        for (const OptionRow& row : option_table()) made.rows.push_back(&row);
        made.other_names = kOtherNames;
        made.advice = " (write the program's own options after its name)";
        return made;
    }();
    return grammar;
}

// Names that are asked for here stand in our own code, so a missing one is a programmer's mistake.
const OptionRow& option_row(std::string_view name) {
    for (const OptionRow& row : option_table())
        if (row.name == name) return row;
    DDPRUN_CHECK(false, "an option that is not in the table");
    std::abort();
}

std::string pet_variable(const OptionRow& row) {
    std::string name = "PET_";
    // Names have lower-case letters, dashes and no digits, which makes this conversion enough.
    for (char c : row.name) name += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
    return name;
}

}  // namespace ddprun::launcher
