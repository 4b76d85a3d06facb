# annulet_layer(NAME [USES layers...] [LINKS targets...] SOURCES files...)
# One library target per layer of the architecture: annulet_NAME, alias annulet::NAME. USES names the layers that its
# headers may include (tests/architecture checks the include graph against the same rule); LINKS are outside libraries
# that only its sources see.

if(CMAKE_CXX_FLAGS MATCHES "-ffast-math|-Ofast|-ffinite-math-only")
  message(FATAL_ERROR "CMAKE_CXX_FLAGS has ${CMAKE_MATCH_0} (NaN and Inf would no longer be recognised). Remove it.")
endif()

set(annulet_arch_flags $<$<BOOL:${ANNULET_ARCH}>:-march=${ANNULET_ARCH}>)
set(annulet_warnings -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion $<$<BOOL:${ANNULET_WERROR}>:-Werror>)

# Several sources of a target as one, with ANNULET_UNITY: their headers are read once. The anonymous namespaces of a layer
# thereby become one, so helpers in them have names of their own.
function(annulet_unity target)
  if(ANNULET_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
endfunction()

# Settings of every target compiled here, tests included.
function(annulet_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE ${annulet_warnings} $<$<CONFIG:Release>:-O3> ${annulet_arch_flags})
  if(ANNULET_SANITIZE)
    # GCC's checks for uninitialised values are known to be wrong in instrumented code, in Eigen and the intrinsics here.
    target_compile_options(${target} PRIVATE -fsanitize=${ANNULET_SANITIZE} -fno-omit-frame-pointer -g1
                                             -Wno-uninitialized -Wno-maybe-uninitialized)
    target_link_options(${target} PUBLIC -fsanitize=${ANNULET_SANITIZE})
  endif()
endfunction()

# What nearly every source includes is compiled once: a quarter of the time to build.
add_library(annulet_headers OBJECT ${CMAKE_CURRENT_LIST_DIR}/headers.cpp)
set_target_properties(annulet_headers PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(annulet_headers PRIVATE fmt::fmt)
annulet_target(annulet_headers)
target_precompile_headers(annulet_headers PRIVATE <fmt/format.h> <algorithm> <chrono> <functional> <memory> <string> <vector>)

function(annulet_layer name)
  cmake_parse_arguments(ARG "" "" "USES;LINKS;SOURCES" ${ARGN})
  add_library(annulet_${name} STATIC ${ARG_SOURCES})
  add_library(annulet::${name} ALIAS annulet_${name})
  set_target_properties(annulet_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_include_directories(annulet_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                    $<INSTALL_INTERFACE:include>)
  foreach(layer IN LISTS ARG_USES)
    target_link_libraries(annulet_${name} PUBLIC annulet_${layer})
  endforeach()
  target_link_libraries(annulet_${name} PRIVATE ${ARG_LINKS})
  annulet_target(annulet_${name})
  if(fmt::fmt IN_LIST ARG_LINKS AND NOT name MATCHES "^(nn|report)$")  # these two have compile options of their own
    target_precompile_headers(annulet_${name} REUSE_FROM annulet_headers)
  endif()
  if(NOT name STREQUAL nn)  # hot, and each of its sources is long
    annulet_unity(annulet_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY ANNULET_LAYERS annulet_${name})
endfunction()
