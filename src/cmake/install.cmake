# annulet::annulet (every layer but the command line) for find_package(annulet) and for add_subdirectory.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

get_property(annulet_layers GLOBAL PROPERTY ANNULET_LAYERS)
list(REMOVE_ITEM annulet_layers annulet_cli)
add_library(annulet_all INTERFACE)
add_library(annulet::annulet ALIAS annulet_all)
set_target_properties(annulet_all PROPERTIES EXPORT_NAME annulet)
target_link_libraries(annulet_all INTERFACE ${annulet_layers})

if(TARGET annulet)  # the program: build/annulet, a path short enough to type
  set_target_properties(annulet PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endif()

if(ANNULET_INSTALL)
  set(annulet_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/annulet)
  if(TARGET annulet)
    install(TARGETS annulet RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  install(TARGETS ${annulet_layers} annulet_all EXPORT annulet_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/annulet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.hpp" PATTERN cli EXCLUDE)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/annulet)
  install(EXPORT annulet_targets NAMESPACE annulet:: DESTINATION ${annulet_package_folder})
  configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/annuletConfig.cmake.in
                                ${PROJECT_BINARY_DIR}/annuletConfig.cmake INSTALL_DESTINATION ${annulet_package_folder})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/annuletConfigVersion.cmake COMPATIBILITY SameMajorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/annuletConfig.cmake ${PROJECT_BINARY_DIR}/annuletConfigVersion.cmake
          DESTINATION ${annulet_package_folder})
endif()
