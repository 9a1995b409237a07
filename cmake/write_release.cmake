# Writes this_release.cc if it changes. The commit comes from git, or else from commit.txt, in which git writes it when
# it makes an archive (.gitattributes). ROOT, TO, VERSION, BUILD.
cmake_minimum_required(VERSION 3.25)
set(COMMIT unknown)
if(EXISTS ${ROOT}/.git)
  set(ENV{GIT_OPTIONAL_LOCKS} 0) # a commit at this moment must not find the index locked
  execute_process(COMMAND git -C ${ROOT} describe --always --dirty=-changed --abbrev=12 --exclude=*
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed EQUAL 0)
    set(COMMIT ${described})
  endif()
else()
  file(STRINGS ${ROOT}/cmake/commit.txt lines REGEX "^[0-9a-f]+ [0-9]+$")
  if(lines)
    string(SUBSTRING ${lines} 0 12 COMMIT)
  endif()
endif()
configure_file(${ROOT}/base/this_release.cc.in ${TO} @ONLY)
