// Records of imports, as workers leave them.
#include "agent/warm/import_list.h"

#include <gtest/gtest.h>

using namespace ddprun::agent::warm;

namespace {

std::string names(const ImportList& list) {
    std::string all;
    for (const Import& each : list.imports()) all += each.name + " ";
    return all;
}

}  // namespace

// A line is written when a module is complete, so a package stands behind what it imports. The
// numbers tell who asked first.
TEST(ImportList, HasTheOrderOfTheRequests) {
    ImportList list;
    EXPECT_TRUE(
        list.add("3\ttorch._C\t/lib/_C.so\n2\tnumpy\t/lib/numpy.py\n1\ttorch\t/lib/t.py\n"));
    EXPECT_EQ(names(list), "torch numpy torch._C ");
    EXPECT_EQ(list.imports()[2], (Import{"torch._C", "/lib/_C.so"}));
}

// Each worker has a record, and each generation adds to it.
TEST(ImportList, AddsWhatIsNewBehindTheRest) {
    ImportList list;
    list.add("5\ttorch\t/a\n");
    EXPECT_TRUE(list.add("1\tboard\t/b\n2\ttorch\t/elsewhere\n"));
    EXPECT_FALSE(list.add("1\ttorch\t/a\n"));
    EXPECT_EQ(names(list), "torch board ");
    EXPECT_EQ(list.imports()[0].file, "/a");
}

// A worker has died in the middle of a line, or has written something else there.
TEST(ImportList, SkipsWhatIsNoLineOfARecord) {
    ImportList list;
    list.add(
        "1\tgood\t/g\nx\tbad\t/b\n-1\tbad\t\n2\t\t/b\n3\tbad\n\n4 bad "
        "/b\n99999999999999999999999\tbad\t\n");
    list.add(std::string("1\tb\0d\t/b\n", 9));
    list.add("2\tcut\t/lib/cu");
    EXPECT_EQ(names(list), "good ");
    list.add("");
}
