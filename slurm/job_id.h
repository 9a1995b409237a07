// How a job is spelled for Slurm's commands, and what `scontrol show job` says of it. Pure.
//
// One element of a job array has the array's own id, and to every command this id alone means all
// elements: `scontrol requeue 1001` puts all of them back, also those that have completed. So an
// element is spelled 1001_2. Nothing else spells a job for Slurm (tests/slurm/spelled_once.sh).
//
// The environment cannot prove which element a job is. A container or --export may have dropped the
// variables of the array, and sbatch and salloc pass them on to the jobs that an element submits.
// So what changes a job needs a ShownJob: Slurm itself has said there who this job is.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::slurm {

struct ShownJob;
struct ListedJob;

class JobId {
  public:
    JobId() = default;  // of no job
    // As the environment tells it: good for questions, whose answers are compared, and for texts.
    explicit JobId(const std::map<std::string, std::string>& environment);

    // SLURM_JOB_ID: unique, also among the elements of an array. It is not for Slurm's commands.
    const std::string& number() const { return number_; }
    // "8812", or "1001_2": what Slurm's commands are told, and people who may type them.
    const std::string& spelled() const { return spelled_; }
    // Whether Slurm means this job where it prints `id`: "1001_2", "8812", or "8812+1", a part of a
    // heterogeneous job.
    bool is(std::string_view id) const;

  private:
    friend std::optional<ShownJob> find_job(std::string_view, const JobId&);
    friend std::optional<ListedJob> find_listed(std::string_view, const JobId&);
    JobId(std::string number, std::string spelled)
        : number_(std::move(number)), spelled_(std::move(spelled)) {}

    std::string number_, spelled_;
};

// Where the host of the batch script is. Without it nobody ends the job when its last step ends,
// and its nodes stay allocated until the time limit. slurm/README.md, "Without a batch host", says
// what ddprun does then.
enum class BatchScript {
    // Slurm has removed the host of the batch script from the running job. The script cannot
    // continue, even if the host comes back.
    lost,
    // The host of the script is one of the job's nodes, as far as Slurm knows.
    there,
    // The job has no batch script, or does not run, or the text cannot be understood.
    none,
};

// What Slurm says of one job. Only find_job() makes one.
struct ShownJob {
    JobId id;
    // Of a heterogeneous job: the ids of its parts, the first one with the script. Else empty.
    std::vector<std::string> parts;
    BatchScript script = BatchScript::none;
    // How often Slurm has requeued the job by now; nothing if the text does not say so. A ddprun of
    // an earlier allocation must leave the job alone.
    std::optional<int> restarts;
    // What keeps a waiting job in the queue, as its user wants it.
    bool held = false, depends = false;
    // It may start from then on, in seconds since 1970. 0: the text does not say so in seconds
    // (SLURM_TIME_FORMAT=%s).
    std::chrono::seconds eligible{};

    // Whom the steps must be asked of, for `squeue -j`: "1001_2", or "8812,8813".
    std::string with_parts() const;
    // Whether the job has no other step than that with the number `own`. `steps` is the output of
    // `squeue -s -h -o %i`, one step in each line: "1001_2.0". Slurm's own steps, such as
    // "8812.batch", do not count, and neither do those of other jobs. If a step had a lost node,
    // Slurm still lists it after its end, and it counts.
    bool has_only_step(std::string_view steps, std::string_view own) const;
};

// The job in the output of `scontrol show job`, where an array has a part for each element. Nothing
// if exactly one part is not this job's.
std::optional<ShownJob> find_job(std::string_view shown, const JobId& job);

}  // namespace ddprun::slurm
