# Rooms: the folders that sources lie in. Each is one static library (or only headers), says what it is made of and which
# rooms it uses, and is told of in the order from the bottom up.
#
#   ddprun_room(rendezvous/rules
#     PURE quorum.cc lease.cc      no I/O, clock, thread, log or environment: tests/core_is_pure.cmake looks
#     SHELL …                      sources that may have them
#     USES base rendezvous/model   the rooms whose headers it may include: tests/rooms.cmake looks
#     LINKS …                      other libraries that its headers need
#     PRIVATE …                    other libraries that its sources need
#     ALONE …                      those of the sources that must not come into a program with the others
#     QUICK)                       what runs for each line, message or start: compiled for speed
#
# The launcher is one file that people copy: its rooms are compiled for size where speed does not show. The trainer's
# rooms compute, so they all are for speed.
#
# A room can use only rooms that exist already, so there is no circle.
function(ddprun_room path)
  cmake_parse_arguments(ROOM "QUICK" "" "PURE;SHELL;USES;LINKS;PRIVATE;ALONE" ${ARGN})
  if(ROOM_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "room ${path}: ${ROOM_UNPARSED_ARGUMENTS} is neither PURE, SHELL, USES, LINKS, PRIVATE, ALONE nor QUICK")
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/${path})
  list(TRANSFORM ROOM_PURE PREPEND ${folder}/)
  list(TRANSFORM ROOM_SHELL PREPEND ${folder}/)
  list(TRANSFORM ROOM_ALONE PREPEND ${folder}/)
  ddprun_room_target(target ${path})
  set(sources ${ROOM_PURE} ${ROOM_SHELL})
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  if(sources)
    add_library(${target} STATIC ${ROOM_PURE} ${ROOM_SHELL})
    list(REMOVE_ITEM sources ${ROOM_ALONE})
    ddprun_units(${target} ${sources})
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

# Compiles these sources of a library as one unit, or as several where they have more than 100 kB: two cores then have
# something to do for each room. What is seldom used (seldom_used.cmake) is a unit that the linker finds by its name.
# A name belongs to one file of it: tests/one_name.py looks.
function(ddprun_units target)
  set(unit 0)
  set(bytes 0)
  set(files "")
  foreach(source ${ARGN})
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE file)
    list(APPEND files ${file})
    cmake_path(GET source STEM name)
    ddprun_is_seldom_used(seldom ${target} ${name})
    if(seldom)
      set(group seldom)
    else()
      file(SIZE ${source} size)
      math(EXPR bytes "${bytes} + ${size}")
      if(bytes GREATER 100000)
        math(EXPR unit "${unit} + 1")
        set(bytes ${size})
      endif()
      set(group ${unit})
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  if(files)
    list(JOIN files "," files)
    set_property(GLOBAL APPEND PROPERTY DDPRUN_UNITS "${target}=${files}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${DDPRUN_UNITY} UNITY_BUILD_MODE GROUP)
  endif()
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
  ddprun_units(${name} ${ARGN})
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY DDPRUN_PURE_FILES ${ARGN})
endfunction()
