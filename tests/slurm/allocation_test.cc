// The step as a task sees it in its environment variables. Made-up environments with the values of
// real Slurm versions; pure.
#include "slurm/allocation.h"

#include <gtest/gtest.h>

namespace ddprun::slurm {
namespace {

// The second task of `srun -N2 -r1` in a job of four nodes, as Slurm 22.05 shows it. The numbers
// differ on purpose: the step has other nodes than the job, and other GPUs than the batch host.
Environment step() {
    return {{"SLURM_JOB_ID", "8812"},
            {"SLURM_CLUSTER_NAME", "lab"},
            {"SLURM_STEP_ID", "0"},
            {"SLURM_STEP_NODELIST", "n[2-3]"},
            {"SLURM_STEP_NUM_NODES", "2"},
            {"SLURM_STEP_NUM_TASKS", "2"},
            {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
            {"SLURM_JOB_NODELIST", "n[1-4]"},
            {"SLURM_NODELIST", "n[1-4]"},
            {"SLURM_NODEID", "1"},
            {"SLURM_PROCID", "1"},
            {"SLURM_LOCALID", "0"},
            {"SLURM_GPUS_ON_NODE", "4"},
            {"CUDA_VISIBLE_DEVICES", "0,1,2,3"},
            {"SLURM_STEP_GPUS", "4,5,6,7"},
            {"SLURM_JOB_GPUS", "0,1,2,3"},
            {"SLURM_CPUS_ON_NODE", "64"},
            {"SLURM_STEP_RESV_PORTS", "20001-20002"},
            {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"},
            {"SLURM_SUBMIT_DIR", "/home/u"},
            {"SLURMD_NODENAME", "n3"}};
}

// The same step with one variable changed or added.
Environment step_with(const char* name, const char* value) {
    Environment environment = step();
    environment[name] = value;
    return environment;
}

// A batch script has the same variables as task 0, and only the step id shows the difference. A
// batch script that is taken for a task would wait for nodes on which nobody has started ddprun.
TEST(Allocation, ContextIsToldByTheStepId) {
    EXPECT_EQ(context_of({}), Context::none);
    EXPECT_EQ(context_of({{"SLURM_STEP_ID", "0"}}), Context::none);
    Environment batch{{"SLURM_JOB_ID", "7"},
                      {"SLURM_PROCID", "0"},
                      {"SLURM_NODEID", "0"},
                      {"SLURMD_NODENAME", "n1"}};
    EXPECT_EQ(context_of(batch), Context::batch);
    EXPECT_FALSE(read_allocation(batch)->has_value());
    EXPECT_EQ(context_of({{"SLURM_JOBID", "7"}}), Context::shell);
    EXPECT_EQ(context_of(step()), Context::step);
    // The ids that Slurm reserves for an interactive step, a batch script and an extern step.
    EXPECT_EQ(context_of(step_with("SLURM_STEP_ID", "4294967290")), Context::interactive);
    EXPECT_EQ(context_of(step_with("SLURM_STEP_ID", "4294967291")), Context::batch);
    EXPECT_EQ(context_of(step_with("SLURM_STEP_ID", "4294967292")), Context::batch);
    // The same three ids as Slurm 26.05 writes them.
    EXPECT_EQ(context_of(step_with("SLURM_STEP_ID", "-6")), Context::interactive);
    EXPECT_EQ(context_of(step_with("SLURM_STEP_ID", "-5")), Context::batch);
    EXPECT_EQ(context_of(step_with("SLURM_STEP_ID", "-4")), Context::batch);
}

// The nodes are those of the step, not of the job: two steps of one job are two worlds. The GPUs
// are those of this node: SLURM_JOB_GPUS holds the numbers of the batch host.
TEST(Allocation, ReadsTheStep) {
    auto result = read_allocation(step());
    ASSERT_TRUE(result) << result.error();
    const Allocation& allocation = result->value();
    EXPECT_EQ(allocation.cluster, "lab");
    EXPECT_EQ(allocation.job_id, "8812");
    EXPECT_EQ(allocation.step_id, "0");
    EXPECT_EQ(allocation.nodes, (std::vector<std::string>{"n2", "n3"}));
    EXPECT_EQ(allocation.job_nodes.size(), 4u);
    EXPECT_EQ(allocation.node_id, 1);
    EXPECT_EQ(allocation.node_name, "n3");
    EXPECT_EQ(allocation.tasks_here(), 1);
    EXPECT_EQ(allocation.gpus_on_node, 4);
    EXPECT_EQ(allocation.visible_devices, "0,1,2,3");
    EXPECT_EQ(allocation.step_gpus, "4,5,6,7");
    EXPECT_EQ(allocation.cpus_on_node, 64);
    EXPECT_EQ(allocation.reserved_ports, (std::vector<int>{20001, 20002}));
    EXPECT_EQ(allocation.restart_count, 0);
    EXPECT_FALSE(allocation.batch_job);
    EXPECT_TRUE((*read_allocation(step_with("ENVIRONMENT", "BATCH")))->batch_job);
    EXPECT_EQ(allocation.end_time, std::nullopt);
    EXPECT_EQ(allocation.launch_node_address, "10.0.0.1");
    EXPECT_EQ(allocation.submit_directory, "/home/u");
}

// A step of `srun --jobid=` has few variables, and a container may drop more. The older names serve
// where the newer ones are missing.
TEST(Allocation, ReadsASparseEnvironment) {
    auto result =
        read_allocation({{"SLURM_JOBID", "5"}, {"SLURM_STEPID", "3"}, {"SLURM_NODELIST", "a1"}});
    ASSERT_TRUE(result) << result.error();
    EXPECT_EQ((*result)->node_name, "a1");
    EXPECT_EQ((*result)->tasks_here(), 1);
    EXPECT_EQ((*result)->gpus_on_node, std::nullopt);
    EXPECT_EQ((*result)->visible_devices, std::nullopt);
}

// The step above has no restart count and no end time; here they are set. An empty
// CUDA_VISIBLE_DEVICES means no device, and an unset one may mean all. GPUs of two types count
// together.
TEST(Allocation, ReadsWhatMayBeMissing) {
    Environment environment = step();
    environment["CUDA_VISIBLE_DEVICES"] = "";
    environment["SLURM_RESTART_COUNT"] = "2";
    environment["SLURM_JOB_END_TIME"] = "1794000000";
    environment["SLURM_GPUS_PER_TASK"] = "a100:1,h100:2";
    environment["SLURM_STEP_RESV_PORTS"] = "20001-20002,20007";
    auto result = read_allocation(environment);
    ASSERT_TRUE(result) << result.error();
    EXPECT_EQ((*result)->visible_devices, "");
    EXPECT_EQ((*result)->restart_count, 2);
    EXPECT_EQ((*result)->end_time, 1794000000);
    EXPECT_EQ((*result)->gpus_per_task, 3);
    EXPECT_EQ((*result)->reserved_ports.size(), 3u);
}

// A wrong value usually comes from a variable that was copied from another environment, or set by
// hand. The error names the variable, its text, the position, and what to check.
TEST(Allocation, NamesTheVariable) {
    struct Row {
        const char* name;
        const char* value;
        const char* sentence;
    };
    for (const Row& row : {
             Row{"SLURM_STEP_NODELIST", "gpu[01-0x]",
                 "SLURM_STEP_NODELIST=\"gpu[01-0x]\": not a host range at character 9; is this run "
                 "inside an "
                 "allocation?"},
             Row{"SLURM_STEP_NUM_NODES", "3",
                 "SLURM_STEP_NODELIST=\"n[2-3]\": 2 nodes, but SLURM_STEP_NUM_NODES is 3; is this "
                 "run inside an "
                 "allocation?"},
             Row{"SLURM_NODEID", "2",
                 "SLURM_NODEID=\"2\": SLURM_STEP_NODELIST names only 2 nodes; is this run inside "
                 "an allocation?"},
             Row{"SLURM_NODEID", "-1",
                 "SLURM_NODEID=\"-1\": not a whole number; is this run inside an allocation?"},
             Row{"SLURM_STEP_TASKS_PER_NODE", "1(x3)",
                 "SLURM_STEP_TASKS_PER_NODE=\"1(x3)\": 3 counts for 2 nodes; is this run inside an "
                 "allocation?"},
             Row{"SLURM_STEP_TASKS_PER_NODE", "1(y3)",
                 "SLURM_STEP_TASKS_PER_NODE=\"1(y3)\": not a repetition like (x2) at character 2; "
                 "is this run inside "
                 "an allocation?"},
             Row{"SLURM_LOCALID", "1",
                 "SLURM_LOCALID=\"1\": SLURM_STEP_TASKS_PER_NODE has 1 tasks on this node; is this "
                 "run inside an allocation?"},
             Row{"SLURM_PROCID", "2",
                 "SLURM_PROCID=\"2\": SLURM_STEP_TASKS_PER_NODE has 2 tasks in this step; is this "
                 "run inside an allocation?"},
             Row{"SLURM_GPUS_ON_NODE", "four",
                 "SLURM_GPUS_ON_NODE=\"four\": not a whole number; is this run inside an "
                 "allocation?"},
             Row{"SLURM_STEP_RESV_PORTS", "70000",
                 "SLURM_STEP_RESV_PORTS=\"70000\": not a range of ports; is this run inside an "
                 "allocation?"},
             Row{"SLURM_JOB_ID", "x",
                 "SLURM_JOB_ID=\"x\": not a whole number; is this run inside an allocation?"},
             // Empty counts as not set: --export and containers pass empty variables on. In a step
             // of two nodes this task cannot know which node it is.
             Row{"SLURM_NODEID", "",
                 "SLURM_NODEID is not set in a step of 2 nodes; does --export or a container drop "
                 "Slurm's "
                 "variables?"},
         }) {
        auto result = read_allocation(step_with(row.name, row.value));
        ASSERT_FALSE(result) << row.name << "=" << row.value;
        EXPECT_EQ(result.error(), Error(ErrorCode::usage, row.sentence));
    }
}

// A script that has called no srun: only there a ddprun may requeue the job without a step. Since
// Slurm 26.05 a script has the reserved step id -5.
TEST(ScriptJob, IsThatOfABatchScriptAlone) {
    const Environment script{{"SLURM_JOB_ID", "1001"},
                             {"SLURMD_NODENAME", "n1"},
                             {"ENVIRONMENT", "BATCH"},
                             {"SLURM_RESTART_COUNT", "2"},
                             {"SLURM_JOB_END_TIME", "1800000000"}};
    const auto job = read_script_job(script);
    ASSERT_TRUE(job);
    EXPECT_EQ(job->name, "1001");
    EXPECT_EQ(job->restart_count, 2);
    EXPECT_EQ(job->end_time, 1'800'000'000);
    for (const auto& [name, value, is] :
         {std::tuple("SLURM_STEP_ID", "-5", true), std::tuple("SLURM_STEP_ID", "0", false),
          std::tuple("ENVIRONMENT", "", false), std::tuple("SLURM_JOB_ID", "", false),
          std::tuple("SLURMD_NODENAME", "", false),
          // A worker of a step: its step id is removed.
          std::tuple("DDPRUN_STOP_FILE", "/tmp/ddprun/stop", false)}) {
        Environment other = script;
        other[name] = value;
        EXPECT_EQ(read_script_job(other).has_value(), is) << name << "=" << value;
    }
}

}  // namespace
}  // namespace ddprun::slurm
