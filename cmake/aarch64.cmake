# Builds the programs for AArch64 on another processor. The libraries are Debian's for arm64, unpacked into
# DDPRUN_SYSROOT by packaging/aarch64.sh; compiler, protoc and gRPC's plugin are this machine's.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

set(DDPRUN_SYSROOT "" CACHE PATH "Debian's arm64 libraries, unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DDPRUN_SYSROOT)
if(NOT EXISTS "${DDPRUN_SYSROOT}/usr/include")
  message(FATAL_ERROR "DDPRUN_SYSROOT (${DDPRUN_SYSROOT}) has no libraries for AArch64: run packaging/aarch64.sh")
endif()
set(CMAKE_SYSROOT ${DDPRUN_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${DDPRUN_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${DDPRUN_SYSROOT})
