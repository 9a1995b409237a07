# Writes the headers of the trainer as programs outside include them: <ddprun/trainer/group/process_group.h>, and what
# they include of other rooms, <ddprun/base/error.h>. ROOT: the repository. ROOMS: those of the trainer, with commas
# between them. TO: the folder ddprun.
#
# A header of a room in a room, trainer/snapshot/save/snapshot_writer.h, has its shorter name, too:
# <ddprun/trainer/snapshot/snapshot_writer.h>.
#
# Which headers: what the examples include, those of the rooms that need neither CUDA's, NCCL's, Gloo's, MPI's nor
# libtorch's, and all of ours that they include.
cmake_minimum_required(VERSION 3.25)

# Paths in the repository that a header includes.
function(included result header)
  file(STRINGS ${ROOT}/${header} lines REGEX "^#include \"")
  set(paths "")
  foreach(line ${lines})
    string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" path "${line}")
    list(APPEND paths ${path})
  endforeach()
  set(${result} ${paths} PARENT_SCOPE)
endfunction()

# Nothing is written where nothing changes, so that users' programs are not compiled again.
function(write_header header text)
  set(old "")
  if(EXISTS ${TO}/${header})
    file(READ ${TO}/${header} old)
  endif()
  if(NOT old STREQUAL text)
    file(WRITE ${TO}/${header} "${text}")
  endif()
endfunction()

string(REPLACE "," ";" rooms ${ROOMS})
list(TRANSFORM rooms REPLACE "(.+)" "${ROOT}/\\1/*.h")
file(GLOB all RELATIVE ${ROOT} ${rooms})
# A header that includes one of the others' headers, itself or through one of ours, is for the library's own sources.
set(inside "")
foreach(header ${all})
  file(STRINGS ${ROOT}/${header} foreign REGEX "^#include <(cuda|nccl|gloo/|mpi|torch/|c10/)")
  if(foreign)
    list(APPEND inside ${header})
  endif()
endforeach()
set(before "")
while(NOT before STREQUAL inside)
  set(before "${inside}")
  foreach(header ${all})
    included(paths ${header})
    foreach(path ${paths})
      if(path IN_LIST inside AND NOT header IN_LIST inside)
        list(APPEND inside ${header})
      endif()
    endforeach()
  endforeach()
endwhile()

set(open ${all})
file(GLOB examples RELATIVE ${ROOT} ${ROOT}/examples/*.cc ${ROOT}/examples/*.h)
foreach(example ${examples})
  included(paths ${example})
  list(APPEND open ${paths})
endforeach()
list(FILTER open EXCLUDE REGEX "^examples/")
list(REMOVE_ITEM open ${inside})
set(public "")
while(open)
  list(POP_FRONT open header)
  if(NOT header IN_LIST public)
    list(APPEND public ${header})
    file(READ ${ROOT}/${header} text)
    string(REGEX REPLACE "#include \"([^\"]*)\"" "#include \"ddprun/\\1\"" text "${text}")
    write_header(${header} "${text}")
    if(header MATCHES "^(trainer/[^/]+)/[^/]+/([^/]+)$")
      list(APPEND public ${CMAKE_MATCH_1}/${CMAKE_MATCH_2})
      write_header(${CMAKE_MATCH_1}/${CMAKE_MATCH_2} "#pragma once\n#include \"ddprun/${header}\"\n")
    endif()
    included(paths ${header})
    list(APPEND open ${paths})
  endif()
endwhile()

# Headers that were public once.
file(GLOB_RECURSE written RELATIVE ${TO} ${TO}/*.h)
foreach(header ${written})
  if(NOT header IN_LIST public)
    file(REMOVE ${TO}/${header})
  endif()
endforeach()
