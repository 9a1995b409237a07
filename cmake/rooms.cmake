# Rooms: the folders that sources lie in. Each is one static library (or only headers), says what it is made of and which
# rooms it uses, and is told of in the order from the bottom up.
#
#   ddprun_room(rendezvous/rules
#     PURE quorum.cc lease.cc      no I/O, clock, thread, log or environment: tests/core_is_pure.cmake looks
#     SHELL …                      sources that may have them
#     USES base rendezvous/model   the rooms whose headers it may include: tests/rooms.cmake looks
#     LINKS …                      other libraries that its headers need
#     PRIVATE …                    other libraries that its sources need
#     QUICK)                       what runs for each line, message or start: compiled for speed
#
# The launcher is one file that people copy: its rooms are compiled for size where speed does not show. The trainer's
# rooms compute, so they all are for speed.
#
# A room can use only rooms that exist already, so there is no circle.
function(ddprun_room path)
  cmake_parse_arguments(ROOM "QUICK" "" "PURE;SHELL;USES;LINKS;PRIVATE" ${ARGN})
  if(ROOM_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "room ${path}: ${ROOM_UNPARSED_ARGUMENTS} is neither PURE, SHELL, USES, LINKS, PRIVATE nor QUICK")
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/${path})
  list(TRANSFORM ROOM_PURE PREPEND ${folder}/)
  list(TRANSFORM ROOM_SHELL PREPEND ${folder}/)
  ddprun_room_target(target ${path})
  set(sources ${ROOM_PURE} ${ROOM_SHELL})
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  if(sources)
    add_library(${target} STATIC ${ROOM_PURE} ${ROOM_SHELL})
    set(visible PUBLIC)
    if(NOT ROOM_QUICK AND NOT path MATCHES "^trainer/")
      ddprun_for_size(${target})
    endif()
  else()
    add_library(${target} INTERFACE)
    set(visible INTERFACE)
  endif()
  foreach(used ${ROOM_USES})
    ddprun_room_target(library ${used})
    if(NOT TARGET ${library})
      message(FATAL_ERROR "room ${path} uses ${used}, which comes behind it or does not exist")
    endif()
    target_link_libraries(${target} ${visible} ${library})
  endforeach()
  target_link_libraries(${target} ${visible} ${ROOM_LINKS})
  if(ROOM_PRIVATE)
    target_link_libraries(${target} PRIVATE ${ROOM_PRIVATE})
  endif()
  list(JOIN ROOM_USES "," uses)
  set_property(GLOBAL APPEND PROPERTY DDPRUN_ROOMS "${path}=${uses}")
  set_property(GLOBAL APPEND PROPERTY DDPRUN_PURE_FILES ${ROOM_PURE})
endfunction()

# Compiles a library for size in a release.
function(ddprun_for_size target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
endfunction()

# The library of a room: rendezvous/rules → ddprun_rendezvous_rules.
function(ddprun_room_target result path)
  string(REPLACE "/" "_" name ${path})
  set(${result} ddprun_${name} PARENT_SCOPE)
endfunction()

# A library that is pure, of a room with several.
function(ddprun_pure_library name)
  add_library(${name} STATIC ${ARGN})
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY DDPRUN_PURE_FILES ${ARGN})
endfunction()
