// Which hosts are blamed for ends of generations, and who is left out (PROTOCOL.md, rule 21). Pure
// functions. Bad hardware fails again and again, and should not use up the restarts while spares
// wait.
#include "rendezvous/rules/blame.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::rendezvous;
using namespace ddprun::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

// Generations 0, 1, … each ended because of the node at that place. "" stands for an end without a
// guilty node.
Blame after(const std::vector<std::string>& nodes) {
    Blame blame;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (!nodes[i].empty())
            blame = with_cause(blame, {Generation{static_cast<std::int64_t>(i)}, nodes[i]});
    return blame;
}

std::vector<std::string> names(const std::vector<Candidate>& candidates) {
    std::vector<std::string> all;
    for (const Candidate& candidate : candidates) all.push_back(candidate.node.name);
    return all;
}

std::vector<Candidate> here(const std::vector<std::string>& nodes) {
    std::vector<Candidate> all;
    for (const std::string& name : nodes) all.push_back({node(name), offer()});
    return all;
}

}  // namespace

// Two losses close together are a pattern. Two that lie far apart, in a job of weeks, are bad luck.
TEST(Blame, Rule21a_TwiceWithinFiveGenerations) {
    EXPECT_THAT(after({"a"}).nodes, IsEmpty());
    EXPECT_THAT(after({"a", "b", "c"}).nodes, IsEmpty());
    EXPECT_THAT(after({"a", "a"}).nodes, ElementsAre("a"));
    EXPECT_THAT(after({"a", "", "", "", "a"}).nodes, ElementsAre("a"));
    EXPECT_THAT(after({"a", "", "", "", "", "a"}).nodes, IsEmpty()) << "generations 1 to 5";
}

// A blamed host stays blamed, even if its causes lie long back. The same cause may be heard twice,
// and counts once.
TEST(Blame, Rule21b_IsForTheRestOfTheJob) {
    EXPECT_THAT(after({"a", "a", "", "", "", "", "", "b", "b"}).nodes, ElementsAre("a", "b"));
    const Blame once = with_cause(after({"a"}), {Generation{0}, "a"});
    EXPECT_THAT(once.nodes, IsEmpty());
}

// With --task-per-worker two tasks of n1 fail, one each. They have the same hardware, so n1 is
// blamed. The log gives the option that keeps it out of the next submission.
TEST(Blame, IsTheHostsWhereTasksAreNodes) {
    const Blame blame = after({"n1/0", "n2/0", "n1/1"});
    EXPECT_THAT(blame.nodes, ElementsAre("n1"));
    EXPECT_EQ(exclude_option(blame), "for the next submission: sbatch --exclude=n1");
    EXPECT_THAT(names(without_blamed(here({"n1/0", "n1/1", "n2/0", "n2/1"}), blame, 2)),
                ElementsAre("n2/0", "n2/1"));
}

// A smaller world would be worse than a suspicious node. So blamed nodes are left out only while
// more than three candidates are there, the first ones first. Without blame nobody is left out.
TEST(Blame, LeavesOutWhereThereIsASpare) {
    const Blame blame = after({"b", "b", "c", "c"});
    EXPECT_THAT(names(without_blamed(here({"a", "b", "c"}), blame, 3)), ElementsAre("a", "b", "c"));
    EXPECT_THAT(names(without_blamed(here({"a", "b", "c", "d"}), blame, 3)),
                ElementsAre("a", "c", "d"));
    EXPECT_THAT(names(without_blamed(here({"a", "b", "c", "d", "e"}), blame, 3)),
                ElementsAre("a", "d", "e"));
    EXPECT_THAT(names(without_blamed(here({"a", "b"}), {}, 1)), ElementsAre("a", "b"));
}

// What happened, and what the user can do.
TEST(Blame, SaysWhyAndWhatToDo) {
    EXPECT_EQ(
        blame_sentence(after({"a", "", "a"}), "a", true),
        "a caused the end of generations 0 and 2; a spare replaces it (--blame=off keeps it)");
    EXPECT_EQ(blame_sentence(after({"a", "a"}), "a", false),
              "a caused the end of generations 0 and 1; there is no spare to replace it");
    EXPECT_EQ(exclude_option(after({"a", "a", "b", "b"})),
              "for the next submission: sbatch --exclude=a,b");
}
