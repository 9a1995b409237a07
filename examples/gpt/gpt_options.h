// The options of `gpt`, with their defaults. Pure. Errors: usage, one line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "examples/gpt/gpt_shape.h"
#include "examples/training_run.h"

namespace example::gpt {

// What matrix products multiply on a GPU. automatic: bfloat16, and on CPUs float32.
enum class Precision { automatic, float32, bfloat16 };

// kGptHelp describes each option. examples/python/gpt.py has those of model and training, too.
struct GptOptions : RunOptions {
    GptOptions() : RunOptions{.program = "gpt", .steps = 200} {}
    std::string size = "character";                     // sets the next five
    int layers = 0, heads = 0, width = 0, context = 0;  // 0: those of `size`
    int vocabulary = 0;  // rows of the embedding; 0: those of `size`, or the text's characters
    std::string text;    // a file; empty: the system's licenses
    int batch = 8;       // windows per rank and backward pass
    int accumulate = 1;  // backward passes per step
    float rate = 2e-3f;
    float final_rate = 2e-4f;
    std::int64_t warm_up = 20;  // steps
    float decay = 0.1f;
    float clip = 1;             // greatest norm of all gradients; 0: no clipping
    int bucket_kib = 25 << 10;  // size of a bucket; the first: at most 1 MiB
    std::uint64_t seed = 1;
    std::string init;      // safetensors file to begin with; empty: first_parameters()
    std::string evaluate;  // safetensors file: only its validation loss; empty: train
    int sample = 200;      // characters to print at the end
    Precision precision = Precision::automatic;
};

// `arguments` without the program's name. Accepts `--name value` and `--name=value`. `program`:
// gpt or gpt_torch, which validates after each epoch and chooses the precision itself.
ddprun::Result<GptOptions> parse_gpt_options(const std::vector<std::string>& arguments,
                                             const std::string& program = "gpt");

// The shape that the options ask for, for a text with so many characters.
ddprun::Result<GptShape> shape_of(const GptOptions& options, std::size_t characters);

// What is said where std::bad_alloc was thrown. Not a usage error: other programs may have the
// memory.
ddprun::Error no_memory(const GptOptions& options);

// The text of --help.
extern const char kGptHelp[];

}  // namespace example::gpt
