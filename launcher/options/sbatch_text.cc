// Fills in a batch script line by line. A script has `#SBATCH --nodes=N`, `--gpus-per-node=N` and
// one command `ddprun [OPTIONS] train.py …` (slurm/*.sbatch).
#include "launcher/options/sbatch_text.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/command_line/text_parts.h"
#include "slurm/batch_templates.h"

namespace ddprun::launcher {
namespace {

constexpr std::string_view kProgram = "train.py";
// The nodes of the step and where they meet: Slurm says it.
constexpr std::string_view kKnownToSlurm[] = {"node-rank",     "standalone", "rdzv-backend",
                                              "rdzv-endpoint", "rdzv-id",    "master-addr",
                                              "master-port",   "local-addr"};

std::string spelled(const OptionOrigin& one) {
    const std::string name = "--" + std::string(one.row->name);
    return one.row->placeholder.empty() ? name : name + "=" + shell_word(one.value);
}

bool known_to_slurm(const OptionOrigin& one) {
    return std::ranges::find(kKnownToSlurm, one.row->name) != std::end(kKnownToSlurm);
}

// Where the word `--name=…` begins in the text, with the blank before it; npos: nowhere.
std::size_t find_word(std::string_view text, std::string_view name) {
    return text.find(" --" + std::string(name) + "=");
}

// The value of that word; empty: it is not there.
std::string word_value(std::string_view text, std::string_view name) {
    const std::size_t at = find_word(text, name);
    if (at == std::string_view::npos) return "";
    const std::size_t begin = text.find('=', at) + 1;
    return std::string(text.substr(begin, text.find_first_of(" \n", begin) - begin));
}

void replace_value(std::string& text, std::string_view name, const std::string& value) {
    const std::size_t at = find_word(text, name);
    if (at == std::string::npos) return;
    const std::size_t begin = text.find('=', at) + 1;
    text.replace(begin, std::min(text.find(' ', begin), text.size()) - begin, value);
}

void remove_word(std::string& text, std::string_view name) {
    const std::size_t at = find_word(text, name);
    if (at != std::string::npos) text.erase(at, text.find(' ', at + 1) - at);
}

// The line that starts the job is the only one outside comments that names the program.
bool is_command(std::string_view line) {
    return !line.starts_with('#') && line.find(kProgram) != std::string_view::npos;
}

// The template's line that activates the environment beside the script, and the comment that stands
// for modules.
constexpr std::string_view kActivates = "if [[ -f venv/bin/activate ]]";
constexpr std::string_view kLoads = "#   module load ";

std::string variable(const Environment& environment, const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? "" : found->second;
}

// Activates what is active now; empty: nothing is. conda has no fixed place: its own program
// tells.
std::string activation(const Environment& environment) {
    if (const std::string venv = variable(environment, "VIRTUAL_ENV"); !venv.empty())
        return "source " + shell_word(venv + "/bin/activate");
    const std::string conda = variable(environment, "CONDA_PREFIX");
    std::string program = variable(environment, "CONDA_EXE");
    if (conda.empty() || program.empty()) return "";
    program.resize(std::min(program.rfind('/'), program.size()));
    return "source " + shell_word(program + "/activate") + " " + shell_word(conda);
}

// As the module command has them: "a:b".
std::string modules(const Environment& environment) {
    std::istringstream loaded(variable(environment, "LOADEDMODULES"));
    std::string words;
    for (std::string each; std::getline(loaded, each, ':');) words += " " + shell_word(each);
    return words.empty() ? "" : "module load" + words;
}

// "train" of "train.py".
std::string stem_of(const std::string& program) {
    const std::string name = program.substr(program.rfind('/') + 1);
    return name.substr(0, name.rfind('.') == 0 ? std::string::npos : name.rfind('.'));
}

class Filler {
  public:
    Filler(const Options& options, const Environment& environment, std::string_view script)
        : options_(options), environment_(environment), script_(script) {}

    std::string text() {
        std::string_view rest = script_;
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find('\n'), rest.size() - 1);
            std::string line(rest.substr(0, end));
            rest.remove_prefix(end + 1);
            if (line.starts_with("#SBATCH")) {
                if (on_processors()) remove_word(line, "gpus-per-node");
                if (line == "#SBATCH") continue;
                resources(line);
                if (!std::exchange(has_name_, true)) add_name();
            }
            set_up(line);
            if (is_command(line)) command(line);
            text_ += line + "\n";
        }
        return std::move(text_);
    }

  private:
    // A program of MPI computes on processors, unless it says otherwise.
    bool on_processors() const {
        const auto& workers = options_.nproc_per_node;
        return options_.pmi || (workers && workers->kind == WorkersPerNode::Kind::cpu);
    }

    // What a job of the user's own needs, and the example does not.
    void add_name() {
        if (options_.program.empty()) return;
        text_ += "#SBATCH --job-name=" + shell_word(stem_of(options_.program));
        if (script_.find(" --output=") == std::string_view::npos) text_ += " --output=%x-%j.out";
        text_ +=
            "\n# If your cluster asks for them, fill in and remove one #:\n"
            "##SBATCH --account=ACCOUNT --partition=PARTITION\n";
    }

    // Inside a container there are another Python and other libraries.
    void set_up(std::string& line) {
        const std::string loads = modules(environment_), activates = activation(environment_);
        if (line.starts_with(kLoads) && !loads.empty()) line = loads;
        if (line.starts_with(kActivates) && !activates.empty()) line = activates;
        if (!is_command(line) || script_.find(kActivates) != std::string_view::npos ||
            options_.print_sbatch == "container")
            return;
        for (const std::string& each : {loads, activates})
            if (!each.empty()) text_ += each + "\n";
    }

    // A script with spares keeps as many: its --nodes is above the MAX of its --nnodes.
    int spares() const {
        const std::string range = word_value(script_, "nnodes");
        const std::size_t colon = range.find(':');
        if (colon == std::string::npos) return 0;
        return std::stoi(word_value(script_, "nodes")) - std::stoi(range.substr(colon + 1));
    }

    void resources(std::string& line) const {
        if (options_.nnodes)
            replace_value(line, "nodes", std::to_string(options_.nnodes->max + spares()));
        if (const auto& workers = options_.nproc_per_node;
            workers && workers->kind == WorkersPerNode::Kind::count)
            replace_value(line, options_.pmi ? "cpus-per-task" : "gpus-per-node",
                          std::to_string(workers->count));
    }

    // Whether the option is said elsewhere: --nnodes without a range is sbatch's --nodes, except
    // in a script that has it for its spares.
    bool said_by_sbatch(const OptionOrigin& one) const {
        return one.row->name == "nnodes" && options_.nnodes->min == options_.nnodes->max &&
               spares() == 0;
    }

    void command(std::string& line) {
        const std::size_t at = line.find(kProgram);
        std::string head = line.substr(0, at), arguments = line.substr(at + kProgram.size());
        std::string left_out;
        for (const OptionOrigin& one : options_.origins) {
            if (one.source != OptionSource::command_line || one.row->name == "print-sbatch" ||
                said_by_sbatch(one))
                continue;
            if (known_to_slurm(one)) {
                left_out += " " + spelled(one);
                continue;
            }
            // The user's value takes the place of the script's.
            if (find_word(head, one.row->name) != std::string::npos)
                replace_value(head, one.row->name, shell_word(one.value));
            else
                head += spelled(one) + " ";
        }
        if (!left_out.empty()) text_ += "# Left out, because Slurm knows it:" + left_out + "\n";
        line = head + program(arguments);
    }

    // Arguments of the example go, unless they are what the script is about
    // ("$SLURM_ARRAY_TASK_ID").
    std::string program(const std::string& arguments) const {
        if (options_.program.empty()) return std::string(kProgram) + arguments;
        std::string text = shell_word(options_.program);
        for (const std::string& word : options_.arguments) text += " " + shell_word(word);
        return arguments.find('$') == std::string::npos ? text : text + arguments;
    }

    const Options& options_;
    const Environment& environment_;
    const std::string_view script_;
    std::string text_;
    bool has_name_ = false;
};

}  // namespace

std::string sbatch_text(const Options& options, const Environment& environment) {
    for (const slurm::BatchTemplate& one : slurm::batch_templates())
        if (one.name == *options.print_sbatch) return Filler(options, environment, one.text).text();
    DDPRUN_CHECK(false, "a batch script that the option does not offer");
    return "";
}

}  // namespace ddprun::launcher
