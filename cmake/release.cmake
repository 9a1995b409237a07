# The library ddprun_release, which knows what this build is (base/release.h). It is one small file, which each build
# looks at and changes only when the commit has: a commit costs a link, and compiles nothing else again.
set(release ${PROJECT_BINARY_DIR}/this_release.cc)
add_custom_target(ddprun_commit
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DTO=${release} -DVERSION=${PROJECT_VERSION}
    "-DBUILD=${CMAKE_BUILD_TYPE} ${CMAKE_CXX_COMPILER_ID}-${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_SYSTEM_PROCESSOR}"
    -P ${PROJECT_SOURCE_DIR}/cmake/write_release.cmake
  BYPRODUCTS ${release} VERBATIM)
add_library(ddprun_release STATIC ${release})
add_dependencies(ddprun_release ddprun_commit)
