// Writes, parses and compares what ranks believe about a save.
#include "trainer/snapshot/save/save_opinion.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace ddprun::trainer {
namespace {

// "step 8" and "step 9" of two ranks as one sentence.
std::string differ(int rank, const std::string& mine, const std::string& first,
                   const char* advice) {
    return "rank " + std::to_string(rank) + " saves " + mine + ", and rank 0 saves " + first +
           "; all ranks must save " + advice;
}

std::string files_of(const SaveOpinion& opinion) {
    return std::to_string(opinion.files) + (opinion.files == 1 ? " file" : " files");
}

// Name → type and shape. The name ends before the last two words, "F32 [3, 4]": a shape has a space
// after each comma, so the end is found from the bracket.
std::map<std::string, std::string> parse_list(const std::string& list) {
    std::map<std::string, std::string> tensors;
    std::istringstream lines(list);
    for (std::string line; std::getline(lines, line);) {
        const auto bracket = line.rfind(" [");
        const auto type = bracket == std::string::npos ? bracket : line.rfind(' ', bracket - 1);
        if (type != std::string::npos) tensors[line.substr(0, type)] = line.substr(type + 1);
    }
    return tensors;
}

}  // namespace

std::string tensor_list(const std::vector<TensorView>& tensors) {
    std::vector<std::string> lines;
    for (const auto& tensor : tensors) {
        std::string name = tensor.name;
        for (char& letter : name)
            if (static_cast<unsigned char>(letter) < ' ') letter = '?';
        lines.push_back(name + " " + describe_shape(tensor.type, tensor.shape) + "\n");
    }
    std::sort(lines.begin(), lines.end());
    std::string list;
    for (const auto& line : lines) list += line;
    return list;
}

std::string write_opinion(const SaveOpinion& opinion) {
    std::ostringstream text;
    text << opinion.name.step << ' ' << opinion.name.generation.value << ' ' << opinion.world_size
         << ' ' << opinion.files << ' ' << opinion.tensors << ' ' << opinion.contents;
    return text.str();
}

Result<SaveOpinion> parse_opinion(const std::string& text) {
    std::istringstream words(text);
    SaveOpinion opinion;
    std::int64_t generation = 0;
    words >> opinion.name.step >> generation >> opinion.world_size >> opinion.files >>
        opinion.tensors >> opinion.contents;
    if (!words) return Error(ErrorCode::malformed, "not what a rank says about a save: " + text);
    opinion.name.generation = Generation(generation);
    return opinion;
}

std::optional<std::string> disagreement(const SaveOpinion& first, int rank,
                                        const SaveOpinion& mine) {
    if (mine.name.step != first.name.step)
        return differ(rank, "step " + std::to_string(mine.name.step),
                      "step " + std::to_string(first.name.step), "the same steps");
    if (mine.name != first.name)
        return differ(rank, mine.name.stem(), first.name.stem(), "in the same generation");
    if (mine.world_size != first.world_size)
        return differ(rank, "as one of " + std::to_string(mine.world_size) + " ranks",
                      "as one of " + std::to_string(first.world_size), "in the same world");
    // Other tensors mean other files, too, and the tensors say more.
    if (mine.files != first.files && mine.tensors == first.tensors)
        return differ(rank, files_of(mine), files_of(first),
                      "with the same WriterOptions::file_bytes");
    return std::nullopt;
}

std::string tensor_disagreement(const std::string& first, int rank, const std::string& mine) {
    const auto theirs = parse_list(first), own = parse_list(mine);
    const char* advice = "the same tensors";
    for (const auto& [name, shape] : own) {
        const auto other = theirs.find(name);
        const std::string quoted = "\"" + name + "\" as ";
        if (other == theirs.end())
            return differ(rank, quoted + shape, "no tensor of this name", advice);
        if (other->second != shape)
            return differ(rank, quoted + shape, quoted + other->second, advice);
    }
    for (const auto& [name, shape] : theirs)
        if (!own.contains(name))
            return differ(rank, "no tensor \"" + name + "\"", "it as " + shape, advice);
    // Only a name that occurs twice leads here.
    return differ(rank, "other tensors", "those that it lists", advice);
}

}  // namespace ddprun::trainer
