# What is installed must have been built. CMake's own message names one file, and no way out.
#
# ddprun_install_needs(COMPONENT TARGET…): `cmake --install` of this component first looks for the files of the targets.
function(ddprun_install_needs component)
  set(files "")
  foreach(target ${ARGN})
    list(APPEND files $<TARGET_FILE:${target}>)
  endforeach()
  list(JOIN ARGN " " targets)
  install(CODE "
    foreach(file ${files})
      if(NOT EXISTS \"\${file}\")
        message(FATAL_ERROR \"\${file} has not been built. Build all with: cmake --build ${PROJECT_BINARY_DIR}. \"
          \"Or install what is built: cmake --install ${PROJECT_BINARY_DIR} --component launcher (or trainer). \"
          \"The component ${component} needs: cmake --build ${PROJECT_BINARY_DIR} --target ${targets}\")
      endif()
    endforeach()" COMPONENT ${component})
endfunction()
