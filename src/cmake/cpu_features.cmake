# What the compiler was allowed to use, found by asking it: for the start-up check and for build_info.hpp.
#   annulet_add_cpu_check(target [FLAGS compiler flags...])  `target` refuses to start on a CPU that lacks a feature
#   annulet_use_build_info(target)                           `target` may include "build_info.hpp"
set(annulet_cpu_check_source ${CMAKE_CURRENT_LIST_DIR}/../cli/cpu_check.cpp)
set(annulet_build_info_template ${CMAKE_CURRENT_LIST_DIR}/build_info.hpp.in)

# Only names that __builtin_cpu_supports of both GCC and clang knows.
set(annulet_cpu_feature_names sse3 ssse3 sse4.1 sse4.2 sse4a popcnt avx avx2 fma fma4 xop bmi bmi2 aes pclmul gfni vpclmulqdq
    avx512f avx512cd avx512dq avx512bw avx512vl avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq
    avx512bf16 avx512vp2intersect)

string(TOUPPER "CMAKE_CXX_FLAGS_${CMAKE_BUILD_TYPE}" annulet_config_flags)
separate_arguments(annulet_global_flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${${annulet_config_flags}}")

function(annulet_cpu_features out)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${annulet_global_flags} ${ARGN} -dM -E -x c++ /dev/null
                  OUTPUT_VARIABLE macros ERROR_VARIABLE complaint RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} does not accept ${ARGN} (${complaint}). "
                        "Configure with another -DANNULET_ARCH, or an empty one for the compiler's own default.")
  endif()
  set(features "")
  if(macros MATCHES "__x86_64__|__i386__")
    foreach(name IN LISTS annulet_cpu_feature_names)
      string(TOUPPER ${name} macro)
      string(REPLACE "." "_" macro ${macro})
      if(macros MATCHES "#define __${macro}__ ")
        list(APPEND features ${name})
      endif()
    endforeach()
  endif()
  set(${out} ${features} PARENT_SCOPE)
endfunction()

# What the -march in ARGN means on this machine: "native" is the name of no CPU.
function(annulet_resolve_arch out)
  set(${out} baseline PARENT_SCOPE)
  set(marches ${ARGN})
  list(FILTER marches INCLUDE REGEX "^-march=")
  if(NOT marches)
    return()
  endif()
  list(POP_BACK marches name)  # the last one counts
  string(REPLACE "-march=" "" name ${name})
  if(name STREQUAL "native")
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -Q --help=target OUTPUT_VARIABLE gcc ERROR_QUIET)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native "-###" -E -x c++ /dev/null ERROR_VARIABLE clang OUTPUT_QUIET)
    if(gcc MATCHES "-march=[ \t]+([^ \t\n]+)")
      set(name ${CMAKE_MATCH_1})
    elseif(clang MATCHES "\"-target-cpu\" \"([^\"]+)\"")
      set(name ${CMAKE_MATCH_1})
    endif()
  endif()
  set(${out} ${name} PARENT_SCOPE)
endfunction()

set(annulet_march "")
if(ANNULET_ARCH)
  set(annulet_march -march=${ANNULET_ARCH})
endif()
annulet_cpu_features(ANNULET_CPU_FEATURES ${annulet_march})
annulet_resolve_arch(ANNULET_ARCH_NAME ${annulet_global_flags} ${annulet_march})

function(annulet_use_build_info target)
  set(folder ${PROJECT_BINARY_DIR}/generated)
  string(REPLACE ";" " " features "${ANNULET_CPU_FEATURES}")
  set(blas false)
  if(ANNULET_BLAS)
    set(blas true)
  endif()
  configure_file(${annulet_build_info_template} ${folder}/build_info.hpp @ONLY)
  target_include_directories(${target} PRIVATE ${folder})
endfunction()

function(annulet_add_cpu_check target)
  cmake_parse_arguments(ARG "" "" "FLAGS" ${ARGN})
  set(flags ${annulet_march} ${ARG_FLAGS})
  annulet_cpu_features(features ${flags})
  annulet_resolve_arch(arch ${annulet_global_flags} ${flags})
  set(lines "")
  foreach(name IN LISTS features)
    string(APPEND lines "ANNULET_CPU_FEATURE(\"${name}\")\n")
  endforeach()
  set(folder ${PROJECT_BINARY_DIR}/generated/${target})
  file(CONFIGURE OUTPUT ${folder}/needed_cpu_features.inc CONTENT "${lines}" @ONLY)

  # An object of its own: none of the flags it checks for, and nothing in it that the linker could take from elsewhere.
  add_library(${target}_cpu_check OBJECT ${annulet_cpu_check_source})
  target_include_directories(${target}_cpu_check PRIVATE ${folder} ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${target}_cpu_check PRIVATE ANNULET_BUILT_FOR="${arch}")
  target_compile_options(${target}_cpu_check PRIVATE ${annulet_warnings})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    target_compile_options(${target}_cpu_check PRIVATE -march=x86-64)
  endif()
  set_target_properties(${target}_cpu_check PROPERTIES CXX_STANDARD 20 INTERPROCEDURAL_OPTIMIZATION OFF)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_cpu_check>)
endfunction()
