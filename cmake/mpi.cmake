# Finds MPI for trainer/mpi: MPICH, or with -DMPI_C_COMPILER=FILE another one's mpicc (Intel MPI, MVAPICH). Sets
# DDPRUN_MPI_FOUND and MPI_C_LIBRARIES, and makes the target MPI::MPI_C.
function(ddprun_find_mpi)
  set(DDPRUN_MPI_FOUND OFF PARENT_SCOPE)
  # Inside another project MPI is asked for; sanitizers would see what MPI does itself.
  if(DDPRUN_SANITIZE OR NOT (PROJECT_IS_TOP_LEVEL OR MPI_C_COMPILER))
    return()
  endif()
  # Debian's "mpicc" may be Open MPI's, which ddprun cannot start.
  find_program(MPI_C_COMPILER NAMES mpicc.mpich DOC "mpicc of the MPI for trainer/mpi")
  if(MPI_C_COMPILER)
    find_package(MPI QUIET GLOBAL COMPONENTS C)
  endif()
  if(NOT MPI_C_FOUND)
    message(STATUS "ddprun trainer: no MPICH: trainer/mpi is left out; to have it: apt install libmpich-dev, or "
                   "-DMPI_C_COMPILER=FILE")
    return()
  endif()
  message(STATUS "ddprun trainer: MPI ${MPI_C_LIBRARIES}")
  set(MPI_C_LIBRARIES ${MPI_C_LIBRARIES} PARENT_SCOPE)
  set(DDPRUN_MPI_FOUND ON PARENT_SCOPE)
endfunction()
