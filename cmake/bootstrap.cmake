# Makes the Python files of the fork server (warm/bootstrap) a part of the program.
function(ddprun_embed_bootstrap target)
  set(folder ${CMAKE_SOURCE_DIR}/warm/bootstrap)
  set(module ${CMAKE_SOURCE_DIR}/packaging/python/ddprun)
  set(DDPRUN_BOOTSTRAP "")
  # The module of the wheel, for scripts where that is not installed (_ddprun_frameworks.py).
  foreach(name __init__.py _frameworks.py _torn.py lightning.py transformers.py)
    file(READ ${module}/${name} text)
    string(APPEND DDPRUN_BOOTSTRAP "    {\"hooks/${name}\", R\"python(${text})python\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${module}/${name})
  endforeach()
  # The one that Python looks for is the last one: where it is, all are.
  foreach(name _ddprun_begin.py _ddprun_check.py _ddprun_fingerprint.py _ddprun_frameworks.py _ddprun_hidden.py _ddprun_preload.py
               _ddprun_process.py _ddprun_proved.py _ddprun_record.py _ddprun_recorder.py _ddprun_script.py
               _ddprun_serve.py sitecustomize.py)
    file(READ ${folder}/${name} text)
    string(APPEND DDPRUN_BOOTSTRAP "    {\"${name}\", R\"python(${text})python\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${name})
  endforeach()
  configure_file(${CMAKE_SOURCE_DIR}/warm/bootstrap_files.cc.in ${CMAKE_BINARY_DIR}/bootstrap_files.cc @ONLY)
  target_sources(${target} PRIVATE ${CMAKE_BINARY_DIR}/bootstrap_files.cc)
endfunction()
