# Puts what a running job seldom uses in places of its own inside a program, so that it takes no memory while nobody uses
# it (base/system/locked_program.h): gRPC and OpenSSL, of which a job without operators and without a ledger in etcd uses
# the HMAC of a frame, and what reads the command line, plans and checks.
#
# What decides, beats, kills, restarts and serves the workers' store is not among it: that has to go on while the file
# system below the program hangs.
#
# Each is an archive of the linker's line, or ARCHIVE:MEMBER.
set(DDPRUN_SELDOM_USED
  libgrpc*.a: libgpr.a: libssl.a: libcrypto.a: libabsl_*.a: libupb.a: libcares.a: libz.a: libre2.a:
  libaddress_sorting.a: libddprun_etcd_proto.a: libddprun_control_proto.a: libddprun_rendezvous_ledger.a:*etcd*
  libddprun_launcher_check.a: libddprun_launcher_dry_run.a: libddprun_launcher_options.a: libddprun_launcher_plan.a:
  libddprun_base_command_line.a:
  libddprun_operator_control.a:tunnel* libddprun_warm.a:bootstrap_files* libddprun_agent_host.a:topology*
  libddprun_diagnosis_stacks.a:python_* libddprun_diagnosis_stacks.a:elf_*
  libddprun_launcher_in_slurm.a:headless* libddprun_launcher_job.a:job_config*
  libddprun_launcher_job.a:mpi_library* libddprun_launcher_job.a:program_check*
  libddprun_*.a:unity_seldom*  # the same in a build of rooms
  # From main() to the start of the loop, and the way out.
  launcher/*/main.cc.o libc.a:libc-start*
  # Extensions of messages, which ours have none of.
  libprotobuf-lite.a:extension_set*
  # Texts of wide characters, money, dates and other languages, and names of types.
  libstdc++.a:*wlocale* libstdc++.a:cow-* libstdc++.a:*shim_facets* libstdc++.a:monetary* libstdc++.a:messages_*
  libstdc++.a:*_cow.o libstdc++.a:time_members* libstdc++.a:*codecvt* libstdc++.a:wstring* libstdc++.a:cp-demangle*
  libstdc++.a:floating_* libc.a:*wc* libc.a:*wf* libc.a:vfw* libc.a:wgenops* libc.a:vfscanf* libc.a:gconv*
  libc.a:strptime* libc.a:strtof* libc.a:strtold* libc.a:printf_fphex* libc.a:*xfrm* libc.a:*coll* libc.a:*msgcat*
  libc.a:dcigettext* libc.a:plural*
  # What processors of before 2013 compare and copy texts with, or such with transactions.
  libc.a:str[cn]*-sse* libc.a:stpncpy-sse* libc.a:*-ssse3* libc.a:*-avx2-rtm*
  # Name servers and users, which children of ddprun ask for, and shared libraries, which it has none of.
  libc.a:getaddrinfo* libc.a:getnameinfo* libc.a:gethst* libc.a:getsrv* libc.a:idna* libc.a:res_* libc.a:dns-*
  libc.a:nscd_* libc.a:nss_* libc.a:files-* libc.a:sgets* libc.a:fgetgr* libc.a:fgetpw* libc.a:dl-load*
  libc.a:dl-reloc* libc.a:dl-open* libc.a:dl-close* libc.a:dl-deps* libc.a:dl-lookup* libc.a:dl-version*
  libc.a:dl-cache* libc.a:dl-profile* libc.a:dl-trampoline*)

# Whether a source of a library is among it, by its name without an ending.
function(ddprun_is_seldom_used result library name)
  set(${result} FALSE PARENT_SCOPE)
  foreach(entry ${DDPRUN_SELDOM_USED})
    if(entry MATCHES "^lib${library}\\.a:(.+)$")
      string(REPLACE "*" ".*" pattern ${CMAKE_MATCH_1})
      if(name MATCHES "^${pattern}$")
        set(${result} TRUE PARENT_SCOPE)
      endif()
    endif()
  endforeach()
endfunction()

# The linker script with these places. GNU ld adds it to its own.
#
# All of .eh_frame stays in one section: the index for exceptions has one only, and an exception that passes code
# without an entry ends the program. What is seldom used comes last in it, since entries with the same head share the
# first one. Nothing lies between two parts, not even to begin a page: zeros end the section, as crtend.o does.
function(ddprun_seldom_used_script file)
  set(frames "")
  set(others "")
  foreach(library ${DDPRUN_SELDOM_USED})
    string(APPEND frames "    KEEP (*${library}(.eh_frame))\n")
    string(APPEND others " *${library}")
  endforeach()
  foreach(kind text rodata gcc_except_table)
    set(inputs "")
    foreach(library ${DDPRUN_SELDOM_USED})
      string(APPEND inputs "    *${library}(.${kind} .${kind}.*)\n")
    endforeach()
    if(kind STREQUAL text)  # what runs once, at the start, lies together
      string(REPLACE "(.text .text.*)" "(.text.startup .text.startup.*)" first "${inputs}")
      string(PREPEND inputs "${first}")
    endif()
    set(${kind} "${inputs}")
  endforeach()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT "SECTIONS {
  .text.seldom : {
    ddprun_seldom_code_begin = .;
${text}    ddprun_seldom_code_end = .;
  }
}
INSERT BEFORE .text;
SECTIONS {
  .rodata.seldom : {
    ddprun_seldom_constants_begin = .;
${rodata}  }
  .gcc_except_table.seldom : {
${gcc_except_table}    ddprun_seldom_constants_end = .;
  }
}
INSERT AFTER .rodata;
SECTIONS {
  .eh_frame : {
    KEEP (*(EXCLUDE_FILE (*crtend.o${others}) .eh_frame))
    ddprun_seldom_frames_begin = .;
${frames}    ddprun_seldom_frames_end = .;
    KEEP (*(.eh_frame))
  }
}
INSERT AFTER .eh_frame_hdr;
")
endfunction()

# The rooms so far, without those above, from the top down.
function(ddprun_always_used result)
  get_property(rooms GLOBAL PROPERTY DDPRUN_ROOMS)
  set(libraries "")
  foreach(room ${rooms})
    string(REGEX REPLACE "=.*" "" path ${room})
    ddprun_room_target(library ${path})
    get_target_property(type ${library} TYPE)
    if(type STREQUAL STATIC_LIBRARY AND NOT "lib${library}.a:" IN_LIST DDPRUN_SELDOM_USED
        AND NOT path MATCHES "^(operator/(ddpctl|page)|daemon)$")
      list(PREPEND libraries ${library})
    endif()
  endforeach()
  set(${result} ${libraries} PARENT_SCOPE)
endfunction()

# Whether the linker makes these places: GNU ld does. Others read scripts in their own way, or none.
function(ddprun_linker_orders result script)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_EXE_LINKER_FLAGS}")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${flags} -Wl,--version OUTPUT_VARIABLE version ERROR_QUIET)
  unset(DDPRUN_LINKER_ORDERS CACHE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND version MATCHES "^GNU ld ")
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/seldom_used_probe.cc CONTENT "int main() { throw 1; }\n")
    try_compile(DDPRUN_LINKER_ORDERS ${CMAKE_BINARY_DIR}/seldom_used_probe ${CMAKE_BINARY_DIR}/seldom_used_probe.cc
      LINK_OPTIONS ${ARGN} -Wl,-T,${script})
  endif()
  if(NOT DDPRUN_LINKER_ORDERS)
    message(STATUS "ddprun: this linker does not put apart what is seldom used; an idle ddprun takes 8 MiB more")
  endif()
  set(${result} ${DDPRUN_LINKER_ORDERS} PARENT_SCOPE)
endfunction()

# Links a program statically, with these places where the linker can make them.
function(ddprun_link_static_and_ordered target)
  set(script ${CMAKE_BINARY_DIR}/seldom_used.ld)
  ddprun_seldom_used_script(${script})
  # With g++'s own -static the first exception has all tables of the program read and sorted. Without it g++ takes the
  # start files of other programs, and the linker writes an index.
  set(options -no-pie -static-libgcc -Wl,-static,--eh-frame-hdr)
  ddprun_linker_orders(orders ${script} ${options})
  if(NOT orders)
    target_link_options(${target} PRIVATE -static)
    return()
  endif()
  target_link_options(${target} PRIVATE ${options} -Wl,-T,${script})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
endfunction()
