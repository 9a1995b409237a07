// What the GPT reads: text, windows and vocabulary; shapes and options; files of weights; how a
// character is drawn.
#include <gmock/gmock.h>

#include <numeric>

#include "examples/gpt/gpt_options.h"
#include "examples/gpt/model_file.h"
#include "examples/gpt/sample_text.h"
#include "examples/gpt/text.h"
#include "tests/trainer/ranks.h"

namespace example::gpt {
namespace {

using ddprun::ErrorCode;
using testing::ElementsAre;
using testing::HasSubstr;
namespace test = ddprun::trainer::test;

const GptShape kShape{5, 8, 2, 2, 6};

TEST(GptText, VocabularyHasEachCharacterOnce) {
    EXPECT_EQ(vocabulary_of("banana\n"), "\nabn");
    EXPECT_EQ(vocabulary_of("a\xff\x01"),
              "\x01"
              "a\xff");
}

// 42 characters are ten windows of four; the tenth is for validation. The targets are the tokens
// one place later.
TEST(GptText, EachTenthWindowIsForValidation) {
    std::string text(42, 'a');
    std::iota(text.begin(), text.end(), 'A');
    const auto cut = Text::make(text, text, 4).value();
    EXPECT_EQ(cut.training_windows(), 9);
    EXPECT_EQ(cut.validation_windows(), 1);
    const std::int64_t last[] = {8}, first[] = {0};
    EXPECT_THAT(cut.training(last).tokens, ElementsAre(32, 33, 34, 35));
    EXPECT_THAT(cut.training(last).targets, ElementsAre(33, 34, 35, 36));
    EXPECT_THAT(cut.validation(first).tokens, ElementsAre(36, 37, 38, 39));
}

// With more windows, training skips the tenth ones.
TEST(GptText, TrainingSkipsTheWindowsForValidation) {
    const std::string text(201, 'x');
    const auto cut = Text::make(text, "x", 10).value();
    EXPECT_EQ(cut.training_windows(), 18);
    EXPECT_EQ(cut.validation_windows(), 2);
    const std::int64_t ends[] = {0, 17};
    EXPECT_EQ(cut.training(ends).rows, 2);
    EXPECT_EQ(cut.training(ends).positions(), 20u);
}

TEST(GptText, WrongTextsAreNamed) {
    const auto error = Text::make("short", "short", 4).error();
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_EQ(error.sentence(), "the text has 5 characters, but --context 4 needs at least 41");
    EXPECT_THAT(Text::make("", "a", 4).error().sentence(), HasSubstr("the text has 0 characters"));
    EXPECT_THAT(Text::make(std::string(50, 'a') + "?", "a", 4).error().sentence(),
                HasSubstr("has the character 63 at byte 50, which is not among the 1 characters"));
    EXPECT_THAT(load_text("/no/such/file").error().sentence(), HasSubstr("/no/such/file"));
    EXPECT_EQ(load_text("/no/such/file").error().code(), ErrorCode::usage);
    EXPECT_EQ(load_text("/").error().code(), ErrorCode::usage);
    EXPECT_THAT(load_text("/dev/null").error().sentence(), HasSubstr("/dev/null is empty; --text"));
}

TEST(GptShape, TensorsLieOneAfterTheOther) {
    const auto all = tensors(kShape);
    ASSERT_EQ(all.size(), part_at(kShape.layers, norm1_weight) + 2);
    std::size_t offset = 0;
    for (const auto& tensor : all) {
        EXPECT_EQ(tensor.offset, offset) << tensor.name;
        offset += tensor.count;
    }
    EXPECT_EQ(parameter_count(kShape), offset);
    EXPECT_EQ(all[part_at(1, up_weight)].name, "transformer.h.1.mlp.c_fc.weight");
    EXPECT_THAT(all[part_at(1, up_weight)].shape, ElementsAre(6, 24));
    EXPECT_EQ(all[part_at(0, attention_bias)].name, "transformer.h.0.attn.c_proj.bias");
    EXPECT_EQ(all[last_norm(kShape)].name, "transformer.ln_f.weight");
}

// GPT-2's smallest model, as it is known.
TEST(GptShape, Gpt2Has124MillionParameters) {
    const auto options = parse_gpt_options({"--size", "gpt2"}).value();
    EXPECT_EQ(parameter_count(shape_of(options, 96).value()), 124'439'808u);
}

TEST(GptOptions, SizesAndTheirChanges) {
    auto shape = [](std::vector<std::string> words) {
        return shape_of(parse_gpt_options(words).value(), 96);
    };
    EXPECT_EQ(shape({}).value(), (GptShape{96, 128, 4, 6, 192}));
    EXPECT_EQ(shape({"--width=64", "--heads", "4"}).value(), (GptShape{96, 128, 4, 4, 64}));
    EXPECT_EQ(shape({"--vocabulary=100"}).value().vocabulary, 100);
    EXPECT_EQ(shape({"--width=64"}).error().sentence(),
              "--width 64 is not a multiple of --heads 6");
    EXPECT_EQ(parse_gpt_options({"--size", "huge"}).error().sentence(),
              "--size cannot be \"huge\"; see gpt --help");
    EXPECT_EQ(parse_gpt_options({"--epochs"}).error().code(), ErrorCode::usage);
    EXPECT_TRUE(parse_gpt_options({"--help", "--epochs"}).value().help);
    EXPECT_THAT(check_vocabulary(kShape, 6).error().sentence(),
                HasSubstr("the text has 6 characters, but the vocabulary only 5"));
    EXPECT_TRUE(check_vocabulary(kShape, 5));
}

TEST(GptModelFile, ReadsWhatItWrote) {
    test::TemporaryFolder folder;
    const std::string path = folder.path() / "model.safetensors";
    const auto values = first_parameters(kShape, 3);
    ASSERT_TRUE(write_model(path, kShape, values, "ab\n\xff"));
    const auto model = read_model(path).value();
    EXPECT_EQ(model.shape, kShape);
    EXPECT_EQ(model.parameters, values);
    EXPECT_EQ(model.vocabulary, "ab\n\xff");
}

// A file of transformers: no words of ours, and perhaps no prefix.
TEST(GptModelFile, ReadsAFileOfTransformers) {
    const GptShape shape{3, 4, 1, 2, 128};
    const auto values = first_parameters(shape, 3);
    std::vector<ddprun::trainer::TensorView> views;
    for (const auto& tensor : tensors(shape))
        views.push_back(
            ddprun::trainer::tensor_view(tensor.name.substr(12), tensor.shape,
                                         std::span(values).subspan(tensor.offset, tensor.count)));
    std::string file = ddprun::trainer::safetensors_head(views, {{"format", "pt"}}).value();
    for (auto i : ddprun::trainer::data_order(views))
        file.append(reinterpret_cast<const char*>(views[i].data.data()), views[i].data.size());
    test::TemporaryFolder folder;
    const auto path = folder.path() / "model.safetensors";
    test::write_all(path, file);
    const auto model = read_model(path).value();
    EXPECT_EQ(model.shape, shape);  // heads of 64 numbers
    EXPECT_EQ(model.parameters, values);
    EXPECT_EQ(model.vocabulary, std::nullopt);
    // Tensors without a number: no width, no vocabulary.
    views = {ddprun::trainer::tensor_view("wte.weight", {5, 0}, std::span<const float>()),
             ddprun::trainer::tensor_view("wpe.weight", {5, 0}, std::span<const float>()),
             ddprun::trainer::tensor_view("h.0.ln_1.weight", {0}, std::span<const float>())};
    test::write_all(path, ddprun::trainer::safetensors_head(views, {{"heads", "1"}}).value());
    EXPECT_THAT(read_model(path).error().sentence(), HasSubstr("of width 0 with 1 heads"));
    test::write_all(path, file.substr(0, file.size() - 1));
    EXPECT_EQ(read_model(path).error().code(), ErrorCode::usage);
    EXPECT_THAT(read_model("/no/such").error().sentence(), HasSubstr("the model /no/such cannot"));
}

// The line from 0 to 1 is divided by the softmax: here 1/4, 1/2, 1/4, and a fourth token that does
// not count.
TEST(GptSample, TokensHaveTheirShares) {
    const float logits[] = {0, std::log(2.0f), 0, 9};
    EXPECT_EQ(token_at(logits, 3, 1, 0.0), 0);
    EXPECT_EQ(token_at(logits, 3, 1, 0.24), 0);
    EXPECT_EQ(token_at(logits, 3, 1, 0.26), 1);
    EXPECT_EQ(token_at(logits, 3, 1, 0.74), 1);
    EXPECT_EQ(token_at(logits, 3, 1, 0.76), 2);
    EXPECT_EQ(token_at(logits, 3, 1, 1.0), 2);
    // A low temperature prefers the likeliest one.
    EXPECT_EQ(token_at(logits, 3, 0.1f, 0.01), 1);
}

// Characters of UTF-8 are shown whole. What a terminal would obey, and parts of characters, are
// not.
TEST(GptSample, IsTextForATerminal) {
    EXPECT_EQ(printable_text("\n\tÄpfel ß 漢 🙂\n"), "\n\tÄpfel ß 漢 🙂\n");
    EXPECT_EQ(printable_text("a\x1b[31m\r\x07z"), "a?[31m??z");
    EXPECT_EQ(printable_text("\xc3\xc3\xa4\xa4"), "?ä?");
    EXPECT_EQ(printable_text("\xe6\xbc"), "??");
    EXPECT_EQ(printable_text(std::string("\0\xff", 2)), "??");
}

}  // namespace
}  // namespace example::gpt
