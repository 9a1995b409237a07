# What programs outside link: ddprun::trainer, a static and a shared library of the objects of all rooms that the
# trainer is made of, and ddprun::trainer_torch, a static one with trainer/torch in place of the rooms that need Gloo.
# Their headers are <ddprun/trainer/…>. Included by trainer/CMakeLists.txt, in its scope.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The libraries of ours that one needs, itself included, as the rooms tell it.
function(ddprun_own_libraries result root)
  set(found "")
  set(open ${root})
  while(open)
    list(POP_FRONT open library)
    if(library IN_LIST found)
      continue()
    endif()
    list(APPEND found ${library})
    get_target_property(links ${library} INTERFACE_LINK_LIBRARIES)
    foreach(link ${links})
      string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" link ${link})
      if(TARGET ${link} AND link MATCHES "^ddprun_")
        list(APPEND open ${link})
      endif()
    endforeach()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# Their objects, which serve the programs of this build, too. Nobody replaces a function of a shared library by one of
# his own, so position-independent code costs nothing that counts.
function(ddprun_objects result)
  set(objects "")
  foreach(library ${ARGN})
    get_target_property(type ${library} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      set_property(TARGET ${library} PROPERTY POSITION_INDEPENDENT_CODE ON)
      target_compile_options(${library} PRIVATE -fno-semantic-interposition)
      # What a program does before main() is not for a library (standard_streams.cc), nor who asks it (print_text.cc).
      list(APPEND objects $<FILTER:$<TARGET_OBJECTS:${library}>,EXCLUDE,standard_streams|print_text>
           ${${library}_KERNELS})
    endif()
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()
ddprun_own_libraries(own ddprun_trainer)

# The headers of the rooms of trainer/ that are in it, with their includes written for outside. They are made anew when
# one of the repository changes.
set(headers ${CMAKE_CURRENT_BINARY_DIR}/include)
get_property(rooms GLOBAL PROPERTY DDPRUN_ROOMS)
list(TRANSFORM rooms REPLACE "=.*" "")
list(FILTER rooms INCLUDE REGEX "^trainer/")
set(folders "")
foreach(room ${rooms})
  ddprun_room_target(library ${room})
  if(library IN_LIST own)
    list(APPEND folders ${room})
  endif()
endforeach()
if(DDPRUN_TORCH_FOUND)
  list(APPEND folders trainer/torch)
endif()
if(DDPRUN_MPI_FOUND)
  list(APPEND folders trainer/mpi)
endif()
list(JOIN folders "," rooms)
set(sources examples/*.cc examples/*.h trainer/*/*.h trainer/*/*/*.h base/*.h proto/*.h)
list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/)
file(GLOB sources ${sources})
add_custom_command(OUTPUT ${headers}/stamp
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DROOMS=${rooms} -DTO=${headers}/ddprun
          -P ${CMAKE_CURRENT_SOURCE_DIR}/package/public_headers.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${headers}/stamp
  DEPENDS ${sources} ${CMAKE_CURRENT_SOURCE_DIR}/package/public_headers.cmake
  COMMENT "headers of ddprun::trainer" VERBATIM)
add_custom_target(ddprun_trainer_headers ALL DEPENDS ${headers}/stamp)

# A library for programs outside: target, STATIC or SHARED, its name for them, and the libraries of ours whose objects
# it has. Users of a shared one need nothing of what the objects call.
function(ddprun_package library kind name)
  ddprun_objects(objects ${ARGN})
  add_library(${library} ${kind} ${objects})
  add_dependencies(${library} ddprun_trainer_headers)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${headers}> $<INSTALL_INTERFACE:include>)
  target_compile_features(${library} INTERFACE cxx_std_20)
  target_link_libraries(${library} PUBLIC Boost::headers Threads::Threads PRIVATE ${CMAKE_DL_LIBS})
  if(DDPRUN_CUDA)
    target_link_libraries(${library} PRIVATE CUDA::cudart_static)
  endif()
  # A program with two Gloos crashes. CMake refuses one that links both names, with the name of this property.
  set(both DDPRUN_TRAINER_OR_TRAINER_TORCH_NOT_BOTH)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ddprun_${name} EXPORT_NAME ${name}
    COMPATIBLE_INTERFACE_STRING ${both} INTERFACE_${both} ${name}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endfunction()

foreach(kind STATIC SHARED)
  string(TOLOWER ${kind} name)
  ddprun_package(ddprun_trainer_${name} ${kind} trainer ${own})
  target_link_libraries(ddprun_trainer_${name} PRIVATE gloo)
endforeach()
# The CUDA runtime in it is nobody else's business; and what is missing is found here, not by a user.
target_link_options(ddprun_trainer_shared PRIVATE -Wl,--exclude-libs,ALL)
if(NOT DDPRUN_SANITIZE)
  target_link_options(ddprun_trainer_shared PRIVATE -Wl,-z,defs)
endif()

# For programs with libtorch, and for those over MPI. Each room's own library has this name, too.
set(packages ${CMAKE_CURRENT_BINARY_DIR}/package)
if(DDPRUN_TORCH_FOUND)
  set(with_torch ${own} ddprun_trainer_torch)
  list(REMOVE_ITEM with_torch ddprun_trainer_backend ddprun_trainer_gloo)
  ddprun_package(ddprun_trainer_with_torch STATIC trainer_torch ${with_torch})
  target_link_libraries(ddprun_trainer_with_torch PUBLIC ddprun::libtorch)
  set_target_properties(ddprun_trainer_with_torch PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${packages})
  add_library(ddprun::trainer_torch ALIAS ddprun_trainer_with_torch)
endif()
if(DDPRUN_MPI_FOUND)
  set_property(TARGET ddprun_trainer_mpi PROPERTY POSITION_INDEPENDENT_CODE ON)
  add_library(ddprun_trainer_with_mpi STATIC $<TARGET_OBJECTS:ddprun_trainer_mpi>)
  set_target_properties(ddprun_trainer_with_mpi PROPERTIES OUTPUT_NAME ddprun_trainer_mpi LINKER_LANGUAGE CXX
    ARCHIVE_OUTPUT_DIRECTORY ${packages})
  add_library(ddprun::trainer_mpi ALIAS ddprun_trainer_with_mpi)
endif()

# Inside another project: the kind that the project builds.
if(BUILD_SHARED_LIBS)
  add_library(ddprun::trainer ALIAS ddprun_trainer_shared)
  set(other ddprun_trainer_static)
else()
  add_library(ddprun::trainer ALIAS ddprun_trainer_static)
  set(other ddprun_trainer_shared)
endif()
if(DDPRUN_MPI_FOUND)
  target_link_libraries(ddprun_trainer_with_mpi PUBLIC ddprun::trainer PRIVATE MPI::MPI_C)
endif()
if(NOT DDPRUN_INSTALL)
  set_target_properties(${other} PROPERTIES EXCLUDE_FROM_ALL ON)
  return()
endif()

set(config ${CMAKE_INSTALL_LIBDIR}/cmake/ddprun)
set(kinds static shared)
if(DDPRUN_TORCH_FOUND)
  list(APPEND kinds with_torch)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/torch.cmake DESTINATION ${config} COMPONENT trainer)
endif()
set(needed ${kinds})
if(DDPRUN_MPI_FOUND)
  list(APPEND needed with_mpi)
endif()
list(TRANSFORM needed PREPEND ddprun_trainer_)
ddprun_install_needs(trainer ${needed})
foreach(name ${kinds})
  install(TARGETS ddprun_trainer_${name} EXPORT ddprun_trainer_${name} COMPONENT trainer)
  install(EXPORT ddprun_trainer_${name} NAMESPACE ddprun:: FILE ddprun-trainer-${name}.cmake DESTINATION ${config}
    COMPONENT trainer)
endforeach()
if(DDPRUN_MPI_FOUND)
  install(TARGETS ddprun_trainer_with_mpi COMPONENT trainer)
endif()
install(DIRECTORY ${headers}/ddprun DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT trainer)
configure_package_config_file(package/ddprun-config.cmake.in package/ddprun-config.cmake INSTALL_DESTINATION ${config})
write_basic_package_version_file(package/ddprun-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/package/ddprun-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/package/ddprun-config-version.cmake DESTINATION ${config} COMPONENT trainer)

# pkg-config: ddprun-trainer is the shared library, ddprun-trainer-static the archive with all that it needs.
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(static_needs "-lgloo -pthread -ldl")
if(DDPRUN_CUDA)
  get_target_property(cudart CUDA::cudart_static IMPORTED_LOCATION)
  string(APPEND static_needs " ${cudart} -lrt")
endif()
foreach(name static shared)
  if(name STREQUAL "static")
    set(file ddprun-trainer-static)
    set(libraries "\${libdir}/libddprun_trainer.a ${static_needs}")
  else()
    set(file ddprun-trainer)
    set(libraries "-L\${libdir} -Wl,-rpath,\${libdir} -lddprun_trainer") # also found when the program starts
  endif()
  configure_file(package/ddprun-trainer.pc.in package/${file}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/package/${file}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT trainer)
endforeach()
