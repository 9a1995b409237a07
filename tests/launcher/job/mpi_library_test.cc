// Which MPI a program is linked to.
#include "launcher/job/mpi_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <utility>

using namespace ddprun::launcher;
using testing::Contains;
using testing::IsEmpty;
using testing::StartsWith;

namespace {

std::string own_file() {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace

TEST(MpiLibrary, AProgramNamesTheLibrariesThatItNeeds) {
    EXPECT_THAT(needed_libraries(own_file()), Contains(StartsWith("libc.so")));
}

TEST(MpiLibrary, NothingIsReadBeyondTheFile) {
    EXPECT_THAT(needed_libraries("#!/bin/sh\n"), IsEmpty());
    std::string file = own_file();
    for (std::size_t size = 0; size < 8192; size += 7) needed_libraries(file.substr(0, size));
    // Headers that point anywhere.
    for (std::size_t i = 16; i < 1024; ++i) {
        const char right = std::exchange(file[i], '\xff');
        needed_libraries(file);
        file[i] = right;
    }
}

TEST(MpiLibrary, KnowsTheFamilies) {
    EXPECT_EQ(mpi_among({"libc.so.6", "libmpich.so.12"}).kind, Mpi::mpich);
    EXPECT_EQ(mpi_among({"libmpi.so.12"}).kind, Mpi::mpich);
    EXPECT_EQ(mpi_among({"libmpi.so.40"}).kind, Mpi::open_mpi);
    EXPECT_EQ(mpi_among({"libmpi_cxx.so.40", "libmpi.so.40"}).name, "libmpi_cxx.so.40");
    EXPECT_EQ(mpi_among({"libc.so.6", "libm.so.6", "libmpir.so.9"}).kind, Mpi::none);
}
