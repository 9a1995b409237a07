# Finds libtorch for trainer/torch and makes the target ddprun::libtorch of it. It is installed, too: programs that use
# ddprun::trainer_torch find theirs by it (ddprun-config.cmake).
#
# The first one that is there is taken:
#   DDPRUN_TORCH_ROOT   a folder with include/ and lib/: PyTorch's own package for C++, or the folder "torch" of a
#                       Python environment
#   find_package(Torch) what the project has found with it before
#   build/torch-venv    the current PyTorch, which tests/run.sh --long installs
#   Debian              libtorch-dev (1.13)
# The package's own CMake files are not used: they want the whole CUDA toolkit, also for a program that needs none.
set(DDPRUN_TORCH_ROOT "" CACHE PATH "libtorch for trainer/torch: a folder with include/ and lib/ (default: searched)")
option(DDPRUN_TORCH_CUDA "Link the CUDA half of libtorch, too" OFF)

# Sets DDPRUN_TORCH_FOUND; if there is one DDPRUN_TORCH_FOLDER and DDPRUN_TORCH_VERSION, else DDPRUN_TORCH_PROBLEM.
function(ddprun_find_torch)
  set(DDPRUN_TORCH_FOUND OFF PARENT_SCOPE)
  file(GLOB root ${CMAKE_BINARY_DIR}/torch-venv/lib/python3*/site-packages/torch)
  if(TORCH_INSTALL_PREFIX)
    set(root ${TORCH_INSTALL_PREFIX})
  endif()
  if(DDPRUN_TORCH_ROOT)
    set(root ${DDPRUN_TORCH_ROOT})
  endif()
  list(APPEND root /usr)
  # NO_CACHE: another PyTorch, or none, may be there next time.
  find_path(include torch/csrc/api/include/torch/torch.h PATHS ${root} PATH_SUFFIXES include NO_DEFAULT_PATH NO_CACHE)
  string(REGEX REPLACE "/include/?$" "" found "${include}")
  find_library(cpu torch_cpu PATHS ${found} PATH_SUFFIXES lib lib/x86_64-linux-gnu NO_DEFAULT_PATH NO_CACHE)
  find_library(c10 c10 PATHS ${found} PATH_SUFFIXES lib lib/x86_64-linux-gnu NO_DEFAULT_PATH NO_CACHE)
  if(DDPRUN_TORCH_ROOT AND NOT cpu)
    message(FATAL_ERROR "DDPRUN_TORCH_ROOT=${DDPRUN_TORCH_ROOT}: no include/torch/csrc/api/include/torch/torch.h or no \
lib/libtorch_cpu.so there")
  endif()
  if(NOT include OR NOT cpu OR NOT c10)
    set(DDPRUN_TORCH_PROBLEM "no libtorch" PARENT_SCOPE)
    return()
  endif()
  ddprun_torch_version(version ${found}/include)
  message(STATUS "ddprun trainer: libtorch ${version} in ${found}")
  file(STRINGS ${c10} new_abi REGEX "^_ZN3c10.*__cxx11" LIMIT_COUNT 1)
  if(NOT new_abi)
    set(DDPRUN_TORCH_PROBLEM "this libtorch has strings of the old ABI" PARENT_SCOPE)
    return()
  endif()
  set(DDPRUN_TORCH_FOUND ON PARENT_SCOPE)
  set(DDPRUN_TORCH_FOLDER ${found} PARENT_SCOPE)
  set(DDPRUN_TORCH_VERSION ${version} PARENT_SCOPE)
  if(TARGET ddprun::libtorch)
    return()
  endif()

  add_library(ddprun::libtorch INTERFACE IMPORTED GLOBAL)
  target_include_directories(ddprun::libtorch INTERFACE ${found}/include ${found}/include/torch/csrc/api/include)
  target_link_libraries(ddprun::libtorch INTERFACE ${cpu} ${c10})
  if(DDPRUN_TORCH_CUDA)
    # Nothing in our code refers to it; its kernels register themselves.
    target_link_options(ddprun::libtorch INTERFACE -Wl,--no-as-needed ${found}/lib/libtorch_cuda.so
      ${found}/lib/libc10_cuda.so -Wl,--as-needed -Wl,--allow-shlib-undefined)
  endif()
endfunction()

# The version as the headers have it: 2.15.0.
function(ddprun_torch_version result include)
  set(version "")
  foreach(file torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(EXISTS ${include}/${file})
      file(STRINGS ${include}/${file} lines REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
      foreach(line ${lines})
        string(REGEX REPLACE ".* " "" number "${line}")
        list(APPEND version ${number})
      endforeach()
      break()
    endif()
  endforeach()
  list(JOIN version "." version)
  set(${result} ${version} PARENT_SCOPE)
endfunction()
