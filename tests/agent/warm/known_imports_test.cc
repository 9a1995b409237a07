// What one job leaves for the next.
#include "agent/warm/known_imports.h"

#include <gtest/gtest.h>

using namespace ddprun::agent::warm;

namespace {

const KnownImports kKnown{{{"torch", "/lib/torch/__init__.py"}, {"sys", "built-in"}, {"odd", ""}},
                          {"wandb", "ray"}};

std::string name_of(const PythonCommand& command, const std::string& folder = "/work",
                    const std::map<std::string, std::string>& environment = {{"PATH", "/bin"}}) {
    return imports_file_name(command, folder, environment);
}

}  // namespace

TEST(KnownImports, AreReadAsTheyWereWritten) {
    EXPECT_EQ(read_known_imports(known_imports_text(kKnown)), kKnown);
    EXPECT_EQ(known_imports_text(kKnown),
              "ddprun imports 1\nleave wandb\nleave ray\nimport torch\t"
              "/lib/torch/__init__.py\nimport sys\tbuilt-in\nimport odd\t\n");
}

// A full disk, another version, or somebody else's file.
TEST(KnownImports, AreNotReadFromAnythingElse) {
    const std::string text = known_imports_text(kKnown);
    for (std::size_t length = 0; length < text.size(); ++length) {
        const auto part = read_known_imports(text.substr(0, length));
        if (!part) continue;
        EXPECT_LT(part->imports.size(), kKnown.imports.size());
        EXPECT_EQ(text[length - 1], '\n');
    }
    EXPECT_FALSE(read_known_imports("ddprun imports 2\nimport torch\t/t\n"));
    EXPECT_FALSE(read_known_imports("import torch\t/t\n"));
    EXPECT_FALSE(read_known_imports("ddprun imports 1\nleave torch\n"));
    EXPECT_FALSE(read_known_imports("ddprun imports 1\nimport torch /t\n"));
    EXPECT_FALSE(read_known_imports("ddprun imports 1\nimport \t/t\n"));
    EXPECT_FALSE(read_known_imports("ddprun imports 1\nimport a\t/t\nother\n"));
    EXPECT_FALSE(read_known_imports(std::string("ddprun imports 1\nimport a\t/\0\n", 29)));
}

// A name that would be two lines is left out.
TEST(KnownImports, KeepTheirForm) {
    EXPECT_EQ(known_imports_text({{{"a\nb", "/a"}, {"c", "/c\nd"}, {"e", "/e"}}, {"f\tg", ""}}),
              "ddprun imports 1\nimport e\t/e\n");
}

TEST(KnownImports, BelongToAScriptAndWhatDecidesItsModules) {
    const PythonCommand script{{"python3", "-u"}, "runs/train.py", ""};
    const std::string name = name_of(script);
    EXPECT_TRUE(name.starts_with("train.py-")) << name;
    EXPECT_EQ(name, name_of(script, "/work", {{"PATH", "/bin"}, {"RANK", "1"}}));
    EXPECT_NE(name, name_of(script, "/elsewhere"));
    EXPECT_NE(name, name_of(script, "/work", {{"PATH", "/venv/bin:/bin"}}));
    EXPECT_NE(name, name_of(script, "/work", {{"PATH", "/bin"}, {"PYTHONPATH", "/lib"}}));
    EXPECT_NE(name, name_of({{"/venv/bin/python3", "-u"}, "runs/train.py", ""}));
    EXPECT_NE(name, name_of({{"python3", "-u"}, "", "runs/train.py"}));
    EXPECT_EQ(name_of({{"python3"}, "/a/train.py", ""}),
              name_of({{"python3"}, "/a/train.py", ""}, "/elsewhere"));
    EXPECT_EQ(name_of({{"python3"}, "", ""}), "") << "python -c";
    EXPECT_EQ(name_of({{"python3"}, "/x/a b\n..%", ""}).substr(0, 8), "a_b_.._-");
}

TEST(KnownImports, LieInTheUsersCache) {
    EXPECT_EQ(imports_folder({{"HOME", "/home/me"}}), "/home/me/.cache/ddprun/imports");
    EXPECT_EQ(imports_folder({{"HOME", "/home/me"}, {"XDG_CACHE_HOME", "/c"}}),
              "/c/ddprun/imports");
    EXPECT_EQ(imports_folder({{"HOME", "/home/me"}, {"XDG_CACHE_HOME", "c"}}),
              "/home/me/.cache/ddprun/imports");
    EXPECT_EQ(imports_folder({{"HOME", ""}}), "");
}
